"""Execution of the cells of a design, and measurement of the released models.

The graph of a cell is sampled once and shared by all methods and runs, so that a method's noise is
calibrated for the graph on which it runs. The budgets and tunings of a method form one batch:
settings that differ in numbers only advance together.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core import networks
from private_consensus.core.algorithms.base import Algorithm, stack, structure
from private_consensus.core.problems.base import consensus_error
from private_consensus.core.randomness import PURPOSES, Streams
from private_consensus.privacy import Budget

from .calibration import Calibrated, calibrate_to, prescribed
from .costs import WITHOUT_MESSAGES, bits_of, gradients_of, messages_of
from .design import BASE, Cell, CellConditions, ComparisonDesign, cells, network_of
from .faults import UnreliableNetwork, require_faults
from .neighbours import Neighbours
from .problems import Baseline, Pool, pool_of, shared_out
from .schema import COLUMNS, NEIGHBOUR, TUNINGS
from .tuning import (
    ObjectiveScales,
    Trial,
    TuningCandidate,
    best,
    candidate,
    default_units,
    positions,
    stage_points,
    stage_sizes,
    transferred,
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
    calibrated: Calibrated
    candidate: TuningCandidate

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
class Engine:
    """Tuning, calibration and runs of the methods of a design on one problem.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    problem : str
        Name of the problem.
    pool : Pool
        Records of the problem.
    methods : list of str
        Names of the methods.
    candidates : dict of tuple to TuningCandidate
        Chosen parameters by method, epsilon and kind of tuning.
    copies : dict of str to int
        Number of trials of each tuned method, over which counted tuning composes.
    trials : dict of tuple to list of Trial
        Trials by method, epsilon and kind of tuning.
    calibrations : dict of tuple to Calibrated or InvalidInput
        Cached calibrations, or the reason why there is none.
    neighbours : Neighbours
        Calibration against single agents.
    absent : list of dict
        Methods and cells without results, with the reason ``because``.
    """

    design: ComparisonDesign
    problem: str
    pool: Pool
    methods: list[str]
    candidates: dict[tuple[str, float, str], TuningCandidate] = field(default_factory=dict)
    copies: dict[str, int] = field(default_factory=dict)
    trials: dict[tuple[str, float, str], list[Trial]] = field(default_factory=dict)
    calibrations: dict[tuple, Calibrated | InvalidInput] = field(default_factory=dict)
    neighbours: Neighbours = field(default_factory=Neighbours)
    absent: list[dict[str, Any]] = field(default_factory=list)

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
        self,
        name: str,
        configured: TuningCandidate,
        epsilon: float,
        copies: int,
        world: CellProblem,
    ) -> Calibrated:
        """Return the candidate with its noise; results are cached.

        Parameters
        ----------
        name : str
            Name of the method.
        configured : TuningCandidate
            Algorithm and number of iterations.
        epsilon : float
            Budget.
        copies : int
            Number of times that every release is made.
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
        method = self.design.methods[name]
        algorithm, horizon, _ = configured
        is_neighbour, faults = method.observer == NEIGHBOUR, world.environment.faulty
        # The loss to a neighbour depends on the whole graph and on lost messages.
        statistics = (
            (world.network.identity, faults)
            if is_neighbour
            else algorithm.graph_statistics(world.network)
        )
        problem = world.environment.agents, getattr(world.problem, "records", 0)
        key = (name, algorithm, horizon, epsilon, copies, statistics, problem)
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
            require(calibration.proven, f"methods.{name}.proven", True, expected)
        return calibration

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

    def tune(self, name: str) -> None:
        """Run the trials of a method, and choose its parameters at each budget.

        Parameters that are transferred from other problems are set by :func:`transfer`.

        Parameters
        ----------
        name : str
            Name of the method.
        """
        method = self.design.methods[name]
        default = candidate(self.design, name, self.problem, self.scales)
        centre = default_units(self.design, name, self.problem, self.scales)
        untuned = not (method.proven and method.tuned and len(centre))
        for epsilon in self.design.epsilons:
            for tuning in TUNINGS if untuned else (TRANSFERRED,):
                self.candidates[name, epsilon, tuning] = default
        if untuned:
            return
        world = self.world(self.base, self.design.tuning.seed, TUNING_RUNS)
        self.copies[name] = self.design.tuning.trials
        keys = [(epsilon, tuning) for epsilon in self.design.epsilons for tuning in (TUNED, PAID)]
        for stage in range(len(stage_sizes(self.design.tuning.trials))):
            self._run_stage(name, stage, keys, centre, world)
        for key in keys:
            if trials := self.trials.get((name, *key)):
                self.candidates[(name, *key)] = best(trials).candidate

    def _run_stage(
        self,
        name: str,
        stage: int,
        keys: list[tuple[float, str]],
        centre: np.ndarray,
        world: CellProblem,
    ) -> None:
        """Run the trials of one stage at all budgets, and record their losses."""
        public_start = self.design.methods[name].public_start
        settings, unit_points = [], []
        for epsilon, tuning in keys:
            earlier = self.trials.setdefault((name, epsilon, tuning), [])
            search_centre = best(earlier).units if earlier else centre
            points = stage_points(self.design, public_start, stage, search_centre)
            for index, units in enumerate(points):
                unit_point = None if stage == index == 0 else units
                trial = candidate(self.design, name, self.problem, self.scales, unit_point)
                copies = self.copies[name] if tuning == PAID else 1
                try:
                    calibrated = self.calibrated(name, trial, epsilon, copies, world)
                except InvalidInput:
                    continue
                settings.append(CalibratedCandidate(epsilon, tuning, calibrated, trial))
                unit_points.append(units)
        scored = self.measured(name, settings, world, self._score)
        for setting, units, values in zip(settings, unit_points, scored, strict=True):
            loss = float(np.mean(values[setting.tuning]))
            trials = self.trials[name, setting.epsilon, setting.tuning]
            trials.append(Trial(units, setting.candidate, loss))

    # --- Runs -----------------------------------------------------------------------------------

    def measured(
        self,
        name: str,
        settings: list[CalibratedCandidate],
        world: CellProblem,
        measures: Measures | None = None,
    ) -> list[dict[str, np.ndarray]]:
        """Run settings and return their measures.

        Parameters
        ----------
        name : str
            Name of the method.
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
        batches: dict[Any, list[RunKey]] = defaultdict(list)
        # Equal settings, such as all budgets of a method without noise, run once.
        for key in dict.fromkeys(setting.key for setting in settings):
            algorithm, *horizon_and_start = key
            batches[structure(algorithm), *horizon_and_start].append(key)
        by_key: dict[RunKey, dict[str, np.ndarray]] = {}
        for batch in batches.values():
            by_key |= zip(batch, self._run(name, batch, world, measures), strict=True)
        return [by_key[setting.key] for setting in settings]

    def _run(
        self, name: str, batch: list[RunKey], world: CellProblem, measures: Measures
    ) -> list[dict[str, np.ndarray]]:
        """Run a batch of settings with a common structure and horizon."""
        first_algorithm, horizon, from_public = batch[0]
        network = self._network(name, world)
        problem = world.from_public if from_public else world.problem
        algorithm_name = self.design.methods[name].algorithm["name"]
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

        algorithms = stack([algorithm for algorithm, *_ in batch])
        start_time = time.perf_counter()
        with np.errstate(all="ignore"):
            horizons = np.full(len(batch), horizon)
            algorithms.run(problem, network, world.streams, horizons, record)
            seconds = (time.perf_counter() - start_time) / (len(batch) * len(world.streams.runs))
            values = measures(recorded.get("consensus", recorded["released"]))
        sent = np.full(len(world.streams.runs), messages_of(algorithm_name, world.network, horizon))
        messages = recorded.get("messages", sent)
        values["messages"] = np.broadcast_to(messages, recorded["released"].shape[:2])
        values["bits"] = bits_of(values["messages"], world.problem, recorded, horizon)
        records = self.design.problems[self.problem].records
        gradients = gradients_of(algorithm_name, first_algorithm, world.problem, records, horizon)
        for key, value in {"gradient_evaluations": gradients, "seconds": seconds}.items():
            values[key] = np.full(recorded["released"].shape[:2], value)
        return [{key: value[s] for key, value in values.items()} for s in range(len(batch))]

    def _network(self, name: str, world: CellProblem) -> Any:
        """Return the graph, on which messages are lost if the environment has faults."""
        conditions = world.environment
        if not conditions.faulty or self.design.methods[name].algorithm["name"] in WITHOUT_MESSAGES:
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

    def tune_all(self) -> None:
        """Run the trials of all methods; a method without valid parameters gets no results."""
        for name in self.methods:
            if self.design.methods[name].baseline:
                continue
            logging.info("%s: trials of %s", self.problem, name)
            try:
                self.tune(name)
            except InvalidInput as error:
                self._record_absence(name, str(error), problem=self.problem)

    def rows(self) -> pl.DataFrame:
        """Return all rows of the problem's cells; :attr:`absent` lists cells without results.

        The parameters must have been chosen by :meth:`tune_all`.
        """
        first = self.design.epsilons[0]
        present_methods = [
            name
            for name in self.methods
            if self.design.methods[name].baseline or (name, first, TRANSFERRED) in self.candidates
        ]
        frames = []
        for environment in dict.fromkeys(cell.environment for cell in self.cells):
            environment_cells = [cell for cell in self.cells if cell.environment == environment]
            try:
                world = self.world(environment, self.design.seed, self.design.runs)
            except InvalidInput as error:
                for name in present_methods:
                    self._record_absence(name, str(error), **asdict(environment))
                continue
            for name in present_methods:
                logging.info("%s: %s", environment, name)
                frames += self._method_rows(name, world, environment_cells)
        return pl.concat(frames) if frames else pl.DataFrame(schema=COLUMNS)

    def borders(self) -> list[dict[str, Any]]:
        """Return the position of each chosen parameter in its range, for each method and budget.

        If no trial improves on its starting model, the best parameters are those that change the
        model least. A position at an end of the range is then expected, and is marked so.
        """
        return [
            {
                "method": name, "problem": self.problem, "epsilon": epsilon, "tuning": tuning,
                **border._asdict(),
                "natural": border.natural or ("" if learned else NOTHING_LEARNED),
            }
            for (name, epsilon, tuning), selected in self.candidates.items()
            if name in self.copies and tuning != TRANSFERRED
            for learned in [self._learned(name, epsilon, tuning)]
            for border in positions(self.design, name, self.problem, self.scales, selected)
        ]  # fmt: skip

    def _learned(self, name: str, epsilon: float, tuning: str) -> bool:
        """Return True if the best trial has a smaller loss than its starting model."""
        trials = self.trials.get((name, epsilon, tuning))
        if not trials:
            return False
        chosen = best(trials)
        start = self.pool.public_start * float(chosen.candidate.from_public)
        losses = self._score(start[None, None, None])
        return chosen.loss < float(losses[tuning].item())

    def _record_absence(self, name: str, because: str, **where: Any) -> None:
        self.absent.append({"method": name, "because": because, **where})

    def _method_rows(
        self, name: str, world: CellProblem, environment_cells: list[Cell]
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of a method in the cells of one environment."""
        method, where = self.design.methods[name], asdict(world.environment)
        epsilons = [cell.epsilon for cell in environment_cells]
        if method.baseline:
            yield from self._baseline_rows(name, epsilons, where)
            return
        if not method.proven and environment_cells[0].axis != BASE:
            self._record_absence(name, "not proven: shown in the base cells alone", **where)
            return
        try:
            if world.environment.faulty:
                require_faults(method.algorithm["name"])
            settings = self._settings(name, world, epsilons)
            measured = self.measured(name, settings, world)
        except InvalidInput as error:
            self._record_absence(name, str(error), **where)
            return
        for setting, values in zip(settings, measured, strict=True):
            budget = setting.epsilon, setting.tuning
            yield self._frame(name, budget, setting.calibrated[1:], values, where)

    def _baseline_rows(
        self, name: str, epsilons: list[float], where: dict[str, Any]
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of a model without privacy cost, which is equal in all runs."""
        baseline = self.design.methods[name].baseline
        model: Baseline | None = getattr(self.pool, baseline)()
        if model is None:
            return
        values = {"excess_loss_mean": model.excess, "excess_loss_worst": model.excess}
        if model.accuracy is not None:
            values |= {"accuracy_mean": model.accuracy, "accuracy_worst": model.accuracy}
        values |= dict.fromkeys(("consensus_error", "messages", "bits"), 0.0)
        by_run = {key: np.full(self.design.runs, value) for key, value in values.items()}
        bounds = 0.0, 0.0, True
        # Without public records, only the model that depends on no record is available.
        tunings = TUNINGS if baseline == "data_free" else (PAID, TUNED)
        for budget in product(epsilons, tunings):
            yield self._frame(name, budget, bounds, by_run, where)

    def _settings(
        self, name: str, world: CellProblem, epsilons: list[float]
    ) -> list[CalibratedCandidate]:
        """Return the calibrated settings of a method, without budgets that no noise meets."""
        settings = []
        for epsilon in epsilons:
            for tuning in TUNINGS:
                configured = self.candidates.get((name, epsilon, tuning))
                if configured is None:
                    continue
                copies = self.copies.get(name, 1) if tuning == PAID else 1
                try:
                    calibrated = self.calibrated(name, configured, epsilon, copies, world)
                except InvalidInput as error:
                    where = {**asdict(world.environment), "epsilon": epsilon, "tuning": tuning}
                    self._record_absence(name, str(error), **where)
                    continue
                settings.append(CalibratedCandidate(epsilon, tuning, calibrated, configured))
        return settings

    def _frame(
        self,
        name: str,
        budget: tuple[float, str],
        bounds: tuple[float, float, bool],
        values: dict[str, np.ndarray],
        where: dict[str, Any],
    ) -> pl.DataFrame:
        """Return the rows of one setting, without measures that do not apply.

        ``budget`` is epsilon and the kind of tuning; ``bounds`` are the accountant's epsilon, the
        lower bound and ``proven``.
        """
        method = self.design.methods[name]
        applicable = {key: value for key, value in values.items() if not np.isnan(value).any()}
        runs = len(next(iter(applicable.values())))
        epsilon, tuning = budget
        epsilon_accountant, epsilon_lower, proven = bounds
        columns = {
            **where,
            "epsilon": epsilon,
            "delta": self.design.delta,
            "observer": method.observer,
            "method": name,
            "label": method.title,
            "tuning": tuning,
            "run": np.tile(np.arange(runs), len(applicable)),
            "measure": np.repeat(list(applicable), runs),
            "value": np.concatenate([np.asarray(value, float) for value in applicable.values()]),
            "proven": proven,
            "epsilon_accountant": epsilon_accountant,
            "epsilon_lower": epsilon_lower,
        }
        return pl.DataFrame(columns, schema=COLUMNS)


def _finite_or(values: np.ndarray, replacement: float) -> np.ndarray:
    return np.where(np.isfinite(values), values, replacement)


def engines_of(
    design: ComparisonDesign, prepared: Mapping[str, Any], methods: Iterable[str] | None = None
) -> list[Engine]:
    """Return one engine per problem, with all parameters chosen.

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
    list of Engine
    """
    names = list(design.methods if methods is None else methods)
    engines = []
    for problem in design.problems:
        present_methods = [name for name in names if name in design.methods_of(problem)]
        engine = Engine(design, problem, pool_of(design, problem, prepared), present_methods)
        engine.tune_all()
        engines.append(engine)
    for name in names:
        transfer(engines, name)
    return engines


def transfer(engines: Iterable[Engine], name: str) -> None:
    """Set the parameters of a method on each problem from its trials on the other problems.

    Parameters
    ----------
    engines : iterable of Engine
        Engines whose trials have been run, one per problem.
    name : str
        Name of the method.
    """
    tuned = [engine for engine in engines if name in engine.copies]
    for engine in tuned:
        design, method = engine.design, engine.design.methods[name]
        for epsilon in design.epsilons:
            best_units = [
                best(trials).units
                for donor in tuned
                if donor is not engine and (trials := donor.trials.get((name, epsilon, TUNED)))
            ]
            units = transferred(best_units, method.public_start)
            engine.candidates[name, epsilon, TRANSFERRED] = candidate(
                design, name, engine.problem, engine.scales, units
            )
