"""Execution of the cells of a design, and measurement of the released models.

The graph of a cell is sampled once and shared by all methods and runs, so that a method's noise is
calibrated for the graph on which it runs. The budgets and tunings of a method form one batch:
settings that differ in numbers only advance together.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.grouping import grouped
from private_consensus.core import networks
from private_consensus.core.algorithms.base import Algorithm, stack, structure
from private_consensus.core.problems.base import consensus_error
from private_consensus.core.randomness import PURPOSES, Streams
from private_consensus.privacy import Budget

from .calibration import Calibrated, calibrate_to, prescribed
from .costs import WITHOUT_MESSAGES, bits_of, gradients_of, messages_of
from .design import (
    BASE,
    Cell,
    CellConditions,
    ComparisonDesign,
    MethodDesign,
    cells,
    network_of,
)
from .faults import UnreliableNetwork, require_faults
from .neighbours import Neighbours
from .problems import Baseline, Pool, pool_of, shared_out
from .schema import COLUMNS, NEIGHBOUR, TUNINGS
from .tuning import (
    ObjectiveScales,
    SearchSpace,
    Trial,
    TuningCandidate,
    best,
    stage_sizes,
)

TUNING_RUNS = 3
"""Number of runs of a trial, which have separate seeds."""
NOTHING_LEARNED = "no trial improves on its starting model, so that the best choice moves least"
"""Reason why parameters are at an end of their range if no trial improves on its start."""
RECORDED = ("released", "consensus", "bits")
"""Quantities recorded at the last iteration: the released models, their consensus after a second
stage of averaging, and the bits if the algorithm counts them."""
PAID, TUNED, TRANSFERRED = TUNINGS


Measures = Callable[[np.ndarray], dict[str, np.ndarray]]
"""Map from models [settings, runs, agents, dim] to measures [settings, runs]."""


RunKey = tuple[Algorithm, int, bool]
"""Calibrated algorithm, horizon, and True for the public starting point."""


class CalibratedCandidate(NamedTuple):
    """Calibrated candidate with its budget and kind of tuning."""

    epsilon: float
    tuning: str
    candidate: TuningCandidate
    calibrated: Calibrated

    @property
    def key(self) -> RunKey:
        """Algorithm, horizon and starting point, which determine the runs."""
        return self.calibrated.algorithm, self.candidate.horizon, self.candidate.from_public


@dataclass(frozen=True, eq=False)
class CellProblem:
    """Problem and network of a cell, for some runs.

    ``from_public`` is the problem whose starting point is the public model.
    """

    environment: CellConditions
    problem: Any
    from_public: Any
    network: Any
    streams: Streams


@dataclass
class ComparisonEntry:
    """Method on one problem: its trials, its calibrated noise, and its runs in all cells.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name, problem : str
        Names of the method and of the problem.
    pool : Pool
        Records of the problem.
    candidates : dict of tuple to TuningCandidate
        Chosen parameters by epsilon and kind of tuning.
    trials : dict of tuple to list of Trial
        Trials by epsilon and kind of tuning; empty if nothing is tuned.
    calibrations : dict of tuple to Calibrated or InvalidInput
        Cached calibrations, or the reason why there is none.
    neighbours : Neighbours
        Calibration against single agents.
    absent : list of dict
        Cells without results, with the reason ``because``.
    """

    design: ComparisonDesign
    name: str
    problem: str
    pool: Pool
    candidates: dict[tuple[float, str], TuningCandidate] = field(default_factory=dict)
    trials: dict[tuple[float, str], list[Trial]] = field(default_factory=dict)
    calibrations: dict[tuple, Calibrated | InvalidInput] = field(default_factory=dict)
    neighbours: Neighbours = field(default_factory=Neighbours)
    absent: list[dict[str, Any]] = field(default_factory=list)

    @property
    def method(self) -> MethodDesign:
        """Method of the design."""
        return self.design.methods[self.name]

    # --- Data and graph -------------------------------------------------------------------------

    def world(self, environment: CellConditions, root: int, runs: int) -> CellProblem:
        """Return the data of the runs and the common graph of an environment.

        Parameters
        ----------
        environment : CellConditions
            Attributes of the cell.
        root : int
            Root seed of the random streams.
        runs : int
            Number of runs.

        Returns
        -------
        CellProblem
        """
        groups = {purpose: self._group(purpose, environment) for purpose in PURPOSES}
        streams = Streams(root, tuple(range(runs)), groups)
        parameters = dict(self.design.partitions[environment.partition].model_extra or {})
        rows = shared_out(self.pool, parameters, environment.agents, streams)
        name, graph_parameters = network_of(
            self.design.graphs[environment.graph], environment.graph, environment.agents
        )
        first = Streams(self.design.seed, (0,), groups)
        network = networks.build(first, name, environment.agents, **graph_parameters).of_run(0)
        problem, start = self.pool.problem(rows), self.pool.start
        from_public = problem.starting_at(self.pool.public_start)
        if start is not None:
            problem = problem.starting_at(start)
        return CellProblem(environment, problem, from_public, network, streams)

    def _group(self, purpose: str, environment: CellConditions) -> str:
        """Return the group of random streams for a purpose.

        Noise is common to all cells of a problem. Data depend on the partition over agents, and
        graphs on the graph distribution.
        """
        attributes = {
            "data": (self.problem, environment.agents, environment.partition),
            "graph": (environment.graph, environment.agents),
        }
        return " ".join(map(str, ("comparison", *attributes.get(purpose, (self.problem,)))))

    # --- Calibration ----------------------------------------------------------------------------

    def calibrated(
        self, configured: TuningCandidate, epsilon: float, tuning: str, world: CellProblem
    ) -> Calibrated:
        """Return a candidate with its noise; results are cached.

        Parameters
        ----------
        configured : TuningCandidate
            Algorithm and number of iterations.
        epsilon : float
            Budget.
        tuning : str
            Kind of tuning. If trials are counted, all of them together have the budget.
        world : CellProblem
            Problem and network.

        Returns
        -------
        Calibrated

        Raises
        ------
        InvalidInput
            If no noise meets the budget.
        """
        method = self.method
        copies = self.design.tuning.trials if self.trials and tuning == PAID else 1
        algorithm, horizon = configured.algorithm, configured.horizon
        is_neighbour, faults = method.observer == NEIGHBOUR, world.environment.faulty
        # The loss to a neighbour depends on the whole graph and on lost messages.
        statistics = (
            (world.network.identity, faults)
            if is_neighbour
            else algorithm.graph_statistics(world.network)
        )
        problem = world.environment.agents, getattr(world.problem, "records", 0)
        key = (algorithm, horizon, epsilon, copies, statistics, problem)
        if key not in self.calibrations:
            target = Budget(epsilon, self.design.delta)
            arguments = world.problem, world.network, horizon
            try:
                if method.observer == "none":
                    without_noise = algorithm.calibrate(Budget(np.inf, 0.0), *arguments)
                    calibration = Calibrated(without_noise, np.inf, np.inf, proven=False)
                elif is_neighbour:
                    search = self.neighbours.calibrated
                    calibration = search(algorithm, target, *arguments, copies, faults=faults)
                elif method.proven:
                    calibration = calibrate_to(algorithm, target, *arguments, copies)
                else:
                    calibration = prescribed(algorithm, target, *arguments)
            except InvalidInput as error:
                calibration = error
            self.calibrations[key] = calibration
        calibration = self.calibrations[key]
        if isinstance(calibration, InvalidInput):
            raise calibration
        if method.proven and method.observer != "none":
            expected = "a method with a proven guarantee; set proven: false for other methods"
            require(calibration.proven, f"methods.{self.name}.proven", True, expected)
        return calibration

    def settings(
        self, configured: Iterable[tuple[float, str, TuningCandidate]], world: CellProblem
    ) -> tuple[list[CalibratedCandidate], list[dict[str, Any]]]:
        """Calibrate some candidates.

        Parameters
        ----------
        configured : iterable of tuple
            Epsilon, kind of tuning, and candidate.
        world : CellProblem
            Problem and network.

        Returns
        -------
        settings : list of CalibratedCandidate
            Candidates with budgets that some noise meets.
        refused : list of dict
            Keys ``epsilon`` and ``tuning`` of the other candidates, and the reason ``because``.
        """
        settings, refused = [], []
        for epsilon, tuning, candidate in configured:
            try:
                calibrated = self.calibrated(candidate, epsilon, tuning, world)
            except InvalidInput as error:
                refused.append({"because": str(error), "epsilon": epsilon, "tuning": tuning})
            else:
                settings.append(CalibratedCandidate(epsilon, tuning, candidate, calibrated))
        return settings, refused

    # --- Tuning ---------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> list[Cell]:
        """Cells of the problem."""
        return [cell for cell in cells(self.design) if cell.environment.problem == self.problem]

    @cached_property
    def base(self) -> CellConditions:
        """Environment of the base cell."""
        return next(cell.environment for cell in self.cells if cell.axis == BASE)

    @cached_property
    def scales(self) -> ObjectiveScales:
        """Public curvature and gradient size of an agent's objective in the base cell."""
        return self.pool.scales(self.base.agents)

    @property
    def space(self) -> SearchSpace:
        """Tuned parameters of the method on the problem."""
        return SearchSpace(self.design, self.name, self.problem, self.scales)

    def tune(self) -> None:
        """Run the trials, and choose the parameters at each budget.

        A method without valid parameters gets no results. Parameters that are transferred from
        other problems are set by :func:`transfer`.
        """
        if self.method.baseline:
            return
        logging.info("%s: trials of %s", self.problem, self.name)
        try:
            self._tune()
        except InvalidInput as error:
            self._record_absence(str(error), problem=self.problem)

    def _tune(self) -> None:
        space, epsilons = self.space, self.design.epsilons
        searched = self.method.proven and self.method.tuned and len(space.default_units) > 0
        tunings = (TRANSFERRED,) if searched else TUNINGS
        self.candidates |= dict.fromkeys(product(epsilons, tunings), space.candidate())
        if not searched:
            return
        world = self.world(self.base, self.design.tuning.seed, TUNING_RUNS)
        self.trials |= {key: [] for key in product(epsilons, (TUNED, PAID))}
        for stage in range(len(stage_sizes(self.design.tuning.trials))):
            self._run_stage(stage, world)
        for key, trials in self.trials.items():
            if trials:
                self.candidates[key] = best(trials).candidate

    def _run_stage(self, stage: int, world: CellProblem) -> None:
        """Run the trials of one stage at all budgets, and record their losses."""
        configured = [
            (*key, candidate)
            for key, trials in self.trials.items()
            for candidate in self.space.candidates(stage, trials)
        ]
        settings, _ = self.settings(configured, world)
        scored = self.measured(settings, world, self._score)
        for setting, values in zip(settings, scored, strict=True):
            loss = float(np.mean(values[setting.tuning]))
            self.trials[setting.epsilon, setting.tuning].append(Trial(setting.candidate, loss))

    # --- Runs -----------------------------------------------------------------------------------

    def measured(
        self,
        settings: list[CalibratedCandidate],
        world: CellProblem,
        measures: Measures | None = None,
    ) -> list[dict[str, np.ndarray]]:
        """Run settings and return their measures.

        Parameters
        ----------
        settings : list of CalibratedCandidate
            Settings; equal algorithms with equal horizons run once.
        world : CellProblem
            Problem and network.
        measures : callable, optional
            Measures of the released models; those of the results by default.

        Returns
        -------
        list of dict of str to ndarray, shape (runs,)
            One mapping per setting.
        """
        measures = measures or self._values
        # Equal settings, such as all budgets of a method without noise, run once.
        distinct = dict.fromkeys(setting.key for setting in settings)
        batches = grouped(distinct, lambda key: (structure(key[0]), *key[1:]))
        by_key: dict[RunKey, dict[str, np.ndarray]] = {}
        for batch in batches.values():
            by_key |= zip(batch, self._run(batch, world, measures), strict=True)
        return [by_key[setting.key] for setting in settings]

    def _run(
        self, batch: list[RunKey], world: CellProblem, measures: Measures
    ) -> list[dict[str, np.ndarray]]:
        """Run a batch of settings with a common structure and horizon."""
        first_algorithm, horizon, from_public = batch[0]
        name, network, streams = self.method.algorithm["name"], self._network(world), world.streams
        problem = world.from_public if from_public else world.problem
        recorded: dict[str, np.ndarray] = {}

        def record(t: int, active: np.ndarray, observables: Mapping[str, np.ndarray]) -> None:
            """Record the released quantities of the last iteration.

            Parameters
            ----------
            t : int
                Iteration, from 1.
            active : ndarray of bool
                Settings that are still running.
            observables : mapping of str to ndarray
                Quantities of the iteration.
            """
            if t != horizon:
                return
            recorded.update(
                {key: np.array(observables[key]) for key in RECORDED if key in observables}
            )
            if "released" in observables and isinstance(network, UnreliableNetwork):
                recorded["messages"] = np.sum(network.sent, axis=0).astype(float)

        algorithms, shape = stack([key[0] for key in batch]), (len(batch), len(streams.runs))
        start_time = time.perf_counter()
        with np.errstate(all="ignore"):
            algorithms.run(problem, network, streams, np.full(len(batch), horizon), record)
            seconds = (time.perf_counter() - start_time) / math.prod(shape)
            values = measures(recorded.get("consensus", recorded["released"]))
        messages = recorded.get("messages", messages_of(name, world.network, horizon))
        values["messages"] = np.broadcast_to(messages, shape)
        values["bits"] = bits_of(values["messages"], problem, recorded, horizon)
        records = self.design.problems[self.problem].records
        gradients = gradients_of(name, first_algorithm, problem, records, horizon)
        values["gradient_evaluations"] = np.full(shape, gradients)
        values["seconds"] = np.full(shape, seconds)
        return [{key: value[s] for key, value in values.items()} for s in range(len(batch))]

    def _network(self, world: CellProblem) -> Any:
        """Return the graph, on which messages are lost if the environment has faults."""
        conditions = world.environment
        if not conditions.faulty or self.method.algorithm["name"] in WITHOUT_MESSAGES:
            return world.network
        return UnreliableNetwork(world.network, conditions.missing, conditions.links, world.streams)

    def _score(self, released: np.ndarray) -> dict[str, np.ndarray]:
        """Return the losses by which trials are chosen: on public records, and of all agents."""
        losses = {PAID: self.pool.score(released), TUNED: self.pool.excess(released)}
        return {tuning: _finite_or(values, np.inf).mean(-1) for tuning, values in losses.items()}

    def _values(self, released: np.ndarray) -> dict[str, np.ndarray]:
        """Return the measures of models [settings, runs, agents, dim].

        Non-finite losses become infinite."""
        excess = _finite_or(self.pool.excess(released), np.inf)
        measures = {"excess_loss_mean": excess.mean(-1), "excess_loss_worst": excess.max(-1)}
        accuracy = self.pool.accuracy(released)
        if accuracy is not None:
            measures["accuracy_mean"] = accuracy.mean(-1)
            measures["accuracy_worst"] = accuracy.min(-1)
        measures["consensus_error"] = _finite_or(consensus_error(None, released), np.inf)
        return measures

    # --- Cells ----------------------------------------------------------------------------------

    def rows(self) -> pl.DataFrame:
        """Return the rows of all cells; :attr:`absent` lists cells without results.

        The parameters must have been chosen by :meth:`tune` and :func:`transfer`.
        """
        frames = [pl.DataFrame(schema=COLUMNS)]
        if self.method.baseline or self.candidates:
            for environment in dict.fromkeys(cell.environment for cell in self.cells):
                logging.info("%s: %s", environment, self.name)
                try:
                    frames += self._environment_rows(environment)
                except InvalidInput as error:
                    self._record_absence(str(error), **asdict(environment))
        return pl.concat(frames)

    def borders(self) -> list[dict[str, Any]]:
        """Return the position of each chosen parameter in its range, for each method and budget.

        If no trial improves on its starting model, the best parameters are those that change the
        model least. A position at an end of the range is then expected, and is marked so.
        """
        return [
            {
                "method": self.name, "problem": self.problem, "epsilon": epsilon, "tuning": tuning,
                **border._asdict(),
                "natural": border.natural or ("" if learned else NOTHING_LEARNED),
            }
            for (epsilon, tuning), trials in self.trials.items()
            if trials
            for learned in [self._learned(best(trials), tuning)]
            for border in self.space.positions(best(trials).candidate)
        ]  # fmt: skip

    def _learned(self, trial: Trial, tuning: str) -> bool:
        """Return True if a trial has a smaller loss than its starting model."""
        start = self.pool.public_start * float(trial.candidate.from_public)
        losses = self._score(start[None, None, None])
        return trial.loss < float(losses[tuning].item())

    def _record_absence(self, because: str, **where: Any) -> None:
        self.absent.append({"method": self.name, "because": because, **where})

    def _environment_rows(self, environment: CellConditions) -> list[pl.DataFrame]:
        """Return the rows of the cells of one environment."""
        of_environment = [cell for cell in self.cells if cell.environment == environment]
        epsilons, where = [cell.epsilon for cell in of_environment], asdict(environment)
        world = self.world(environment, self.design.seed, self.design.runs)
        if self.method.baseline:
            return self._baseline_rows(epsilons, where)
        if not self.method.proven and of_environment[0].axis != BASE:
            self._record_absence("not proven: shown in the base cells alone", **where)
            return []
        if environment.faulty:
            require_faults(self.method.algorithm["name"])
        configured = [
            (*key, self.candidates[key])
            for key in product(epsilons, TUNINGS)
            if key in self.candidates
        ]
        settings, refused = self.settings(configured, world)
        for row in refused:
            self._record_absence(**where, **row)
        measured = self.measured(settings, world)
        return [
            self._frame(setting.epsilon, setting.tuning, setting.calibrated[1:], values, where)
            for setting, values in zip(settings, measured, strict=True)
        ]

    def _baseline_rows(self, epsilons: list[float], where: dict[str, Any]) -> list[pl.DataFrame]:
        """Return the rows of a model without privacy cost, which is equal in all runs."""
        model: Baseline | None = getattr(self.pool, self.method.baseline)()
        if model is None:
            return []
        values = {"excess_loss_mean": model.excess, "excess_loss_worst": model.excess}
        if model.accuracy is not None:
            values |= {"accuracy_mean": model.accuracy, "accuracy_worst": model.accuracy}
        values |= dict.fromkeys(("consensus_error", "messages", "bits"), 0.0)
        by_run = {key: np.full(self.design.runs, value) for key, value in values.items()}
        # Without public records, only the model that depends on no record is available.
        tunings = TUNINGS if self.method.baseline == "data_free" else (PAID, TUNED)
        return [
            self._frame(*budget, (0.0, 0.0, True), by_run, where)
            for budget in product(epsilons, tunings)
        ]

    def _frame(
        self,
        epsilon: float,
        tuning: str,
        bounds: Sequence[Any],
        values: dict[str, np.ndarray],
        where: dict[str, Any],
    ) -> pl.DataFrame:
        """Return the rows of one setting, without measures that do not apply.

        ``bounds`` are the accountant's epsilon, the lower bound and ``proven``.
        """
        applicable = {key: value for key, value in values.items() if not np.isnan(value).any()}
        runs = len(next(iter(applicable.values())))
        columns = {
            **where,
            "epsilon": epsilon,
            "delta": self.design.delta,
            "observer": self.method.observer,
            "method": self.name,
            "label": self.method.title,
            "tuning": tuning,
            "run": np.tile(np.arange(runs), len(applicable)),
            "measure": np.repeat(list(applicable), runs),
            "value": np.concatenate([np.asarray(value, float) for value in applicable.values()]),
            **dict(zip(("epsilon_accountant", "epsilon_lower", "proven"), bounds, strict=True)),
        }
        return pl.DataFrame(columns, schema=COLUMNS)


def _finite_or(values: np.ndarray, replacement: float) -> np.ndarray:
    return np.where(np.isfinite(values), values, replacement)


def entries_of(
    design: ComparisonDesign, prepared: Mapping[str, Any], methods: Iterable[str] | None = None
) -> list[ComparisonEntry]:
    """Return the methods on each problem, with all parameters chosen.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    prepared : mapping
        Prepared data sets by name.
    methods : iterable of str, optional
        Names of the methods; all by default.

    Returns
    -------
    list of ComparisonEntry
        In the order of the problems.
    """
    names = list(design.methods if methods is None else methods)
    entries = []
    for problem in design.problems:
        pool, present = pool_of(design, problem, prepared), design.methods_of(problem)
        entries += [
            ComparisonEntry(design, name, problem, pool) for name in names if name in present
        ]
    for entry in entries:
        entry.tune()
    for name in names:
        transfer([entry for entry in entries if entry.name == name and entry.trials])
    return entries


def transfer(entries: Sequence[ComparisonEntry]) -> None:
    """Set the parameters of a method on each problem from its trials on the other problems.

    Parameters
    ----------
    entries : sequence of ComparisonEntry
        Entries of the method, one per problem, whose trials have been run.
    """
    for entry in entries:
        for epsilon in entry.design.epsilons:
            best_units = [
                best(trials).candidate.units
                for donor in entries
                if donor is not entry and (trials := donor.trials[epsilon, TUNED])
            ]
            entry.candidates[epsilon, TRANSFERRED] = entry.space.transferred(best_units)
