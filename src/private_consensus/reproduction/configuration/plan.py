"""Expand the configuration to cells, the units of computation of the workflow.

A cell is one (experiment, algorithm) pair with the complete specification of all its settings. It
is plain JSON; its hash determines whether a result is up to date.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from private_consensus.audits import universes
from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import refused, validate
from private_consensus.core import algorithms, lower_bounds, problems
from private_consensus.core.simulation import MAX_HORIZON

from ..claims import Claim, differences
from .checks import wrong_audits, wrong_experiments, wrong_references, wrong_settings
from .conditions import conditions_of, tested_conditions_of
from .schema import (
    Audits,
    Config,
    ConfigurationError,
    Experiment,
    Figure,
    Paper,
    Smoke,
    Style,
    Table,
    read_paper,
    read_yaml,
    resolve_delta,
)

SECTIONS = ("problem", "network", "budget", "horizon", "algorithm")
"""Sections of a setting."""
NUMBERED = re.compile(r"Figure \w")
"""Start of the title of a figure that is numbered in its paper."""


@dataclass(frozen=True)
class Plan:
    """Validated configuration, and the cells, data sets and figures that it requires.

    ``papers`` are complete, by key. ``styles`` are those of curves, by ``algorithm.variant``.
    ``locations`` are the file and key of each entry of the papers, by section and name.
    ``expanded`` is the cache of :meth:`cell`.
    """

    config: Config
    papers: Mapping[str, Paper]
    styles: Mapping[str, Style]
    audits: Audits
    locations: Mapping[tuple[str, str], str]
    expanded: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def experiments(self) -> dict[str, Experiment]:
        """Experiments of all papers, by name."""
        return {name: e for paper in self.papers.values() for name, e in paper.experiments.items()}

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures of all papers, by name."""
        return {name: f for paper in self.papers.values() for name, f in paper.figures.items()}

    @property
    def tables(self) -> dict[str, Table]:
        """Tables of all papers, by name."""
        return {name: t for paper in self.papers.values() for name, t in paper.tables.items()}

    def cells(self, *algorithms: str) -> list[tuple[str, str]]:
        """Return the (experiment, algorithm) pairs of some algorithms; default: of all."""
        return [
            (name, algorithm)
            for name, experiment in self.experiments.items()
            for algorithm in experiment.algorithms
            if not algorithms or algorithm in algorithms
        ]

    def cell(self, experiment: str, algorithm: str) -> dict[str, Any]:
        """Return the complete specification of a cell, the cached result of :func:`expand`."""
        if (experiment, algorithm) not in self.expanded:
            cell = expand(self.experiments[experiment], experiment, algorithm, self.config)
            self.expanded[experiment, algorithm] = cell
        return self.expanded[experiment, algorithm]

    def modules(self, experiment: str, *names: str) -> list[str]:
        """Return the modules that the cells of some algorithms of an experiment load by name."""
        return modules_of(names, [self.experiments[experiment].problem.name])

    def paper_of(self, figure: str) -> str:
        """Return the key of the paper to which a figure, table or experiment belongs."""
        return next(
            key
            for key, paper in self.papers.items()
            if figure in {**paper.figures, **paper.tables, **paper.experiments}
        )

    def cells_of(self, figure: str) -> list[tuple[str, str]]:
        """Return the cells whose numbers a figure or table shows."""
        if figure in self.tables:
            blocks = self.tables[figure].blocks
            return sorted({(b.experiment, row.method) for b in blocks for row in b.methods})
        panels = self.figures[figure].panels
        return sorted({(c.experiment, c.method) for panel in panels for c in panel.curves})

    def judged_cells(self, paper: str) -> list[tuple[str, str]]:
        """Return the cells (experiment, algorithm) whose results the claims of a paper use."""
        claims = self.papers[paper].claims.values()
        used = [series for claim in claims for _, series in claim.series()]
        return sorted({(series.experiment, series.method) for series in used})

    def claims(self, paper: str) -> dict[str, Claim]:
        """Return the claims of a paper, with the settings of their tests."""
        return {
            name: claim.model_copy(
                update={
                    "addition": not (claim.quotation and self.papers[paper].paper.number),
                    "differences": differences(claim, self.experiments, self.cell),
                    "setting": tested_conditions_of(self, claim),
                }
            )
            for name, claim in self.papers[paper].claims.items()
        }

    def described(self, paper: str) -> dict[str, Any]:
        """Return a paper as plain JSON; each figure contains its conditions as text."""
        description = self.papers[paper].model_dump(mode="json")
        for name, figure in description["figures"].items():
            figure["conditions"] = conditions_of(self, name)
        return description

    def drawing(self, figure: str) -> dict[str, Any]:
        """Return a figure as plain JSON, with its conditions, and with the authors in its title.

        Panels that show a graph contain the network and the seed.
        """
        drawing = self.figures[figure].model_dump(mode="json")
        paper = self.papers[self.paper_of(figure)].paper
        if paper.number:
            mark = ", " if NUMBERED.match(drawing["title"]) else ": "
            drawing["title"] = f"{paper.citation}{mark}{drawing['title']}"
        drawing["conditions"] = conditions_of(self, figure)
        for panel in drawing["panels"]:
            if panel["graph"]:
                network = self.experiments[panel["experiment"]].network
                panel["network"] = network.model_dump(mode="json", exclude_none=True)
                panel["seed"] = self.config.seed
        return drawing

    def audited(self) -> dict[str, list[str]]:
        """Return the algorithms with audited settings, by experiment."""
        audited: dict[str, list[str]] = {}
        for entry in sorted(self.audits.settings, key=lambda entry: entry.experiment):
            if entry.experiment in self.experiments:
                algorithms = audited.setdefault(entry.experiment, [])
                algorithms += [entry.algorithm] if entry.algorithm not in algorithms else []
        return audited

    def audit(self, experiment: str) -> dict[str, Any]:
        """Return the cells, entries and options of the audits of an experiment as plain JSON."""
        entries = [entry for entry in self.audits.settings if entry.experiment == experiment]
        return {
            "pairs": self.audits.pairs[self.config.scale],
            "horizon": self.audits.horizon,
            "max_count": self.audits.max_settings.get(self.config.scale),
            "entries": [entry.model_dump(exclude_defaults=True) for entry in entries],
            "cells": [self.cell(experiment, name) for name in self.audited()[experiment]],
        }

    def preparations_in_use(self) -> list[str]:
        """Return the prepared data sets that the experiments of the plan read."""
        return sorted({data for name in self.experiments for data in self.preparations(name)})

    def tunings(self, experiment: str, algorithm: str) -> list[tuple[str, str]]:
        """Return the cells whose runs determine tuned parameters of a cell."""
        variants = self.experiments[experiment].algorithms[algorithm].values()
        return sorted({(v.tuned.experiment, algorithm) for v in variants if v.tuned})

    def figure_styles(self, figure: str) -> dict[str, dict[str, Any]]:
        """Return the styles of the curves of a figure as plain JSON, by ``algorithm.style``."""
        panels = self.figures[figure].panels
        used = {f"{c.method}.{c.style}" for panel in panels for c in panel.curves}
        return {name: s.model_dump() for name, s in self.styles.items() if name in used}

    def preparations(self, experiment: str, *names: str) -> list[str]:
        """Return the prepared data sets that an experiment or some of its algorithms read."""
        prepared = {
            setting["problem"].get("prepared")
            for name in names or self.experiments[experiment].algorithms
            for setting in self.cell(experiment, name)["settings"]
        }
        return sorted(prepared - {None})


def load(config: Mapping[str, Any], *folders: Path) -> Plan:
    """Validate a configuration and the papers that it names.

    Parameters
    ----------
    config : mapping
        Content of ``config.yaml`` after overrides.
    *folders : Path
        Folders with ``papers/*.yaml``, ``styles.yaml`` and ``audits.yaml``. If several have a paper
        or style of the same name, or audits, the first folder takes precedence.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    """
    source = next(filter(Path.is_file, (folder / "config.yaml" for folder in folders)), None)
    location = f"{os.path.relpath(source)}: " if source else ""
    checked = validate(Config, config, location)
    paths = {p.stem: p for folder in reversed(folders) for p in folder.glob("papers/*.yaml")}
    papers, locations, lines = {}, {}, []
    for key in checked.papers:
        try:
            arguments.choice(f"{location}papers", key, sorted(paths))
            papers[key] = read_paper(paths[key], locations)
        except InvalidInput as error:
            lines += str(error).splitlines()
    if lines:
        raise Refused(lines)
    styles = {
        name: validate(Style, style, f"{os.path.relpath(file)}: {name}.")
        for file in filter(Path.exists, (folder / "styles.yaml" for folder in reversed(folders)))
        for name, style in read_yaml(file).items()
    }
    file = next(filter(Path.is_file, (folder / "audits.yaml" for folder in folders)))
    audits = validate(Audits, read_yaml(file), f"{os.path.relpath(file)}: ")
    plan = Plan(checked, papers, styles, audits, locations)
    # Mistakes in experiments are reported first, because they cause errors in figures and claims.
    for errors in (
        wrong_experiments(plan), _wrong_cells(plan), wrong_references(plan),
        wrong_audits(plan, file),
    ):  # fmt: skip
        if mistakes := list(errors):
            raise refused(mistakes)
    return plan


def _wrong_cells(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield an error per wrong value in the settings of cells."""
    for experiment, algorithm in plan.cells():
        location = f"{plan.locations['experiments', experiment]}.algorithms.{algorithm}"
        try:
            errors = wrong_settings(plan.cell(experiment, algorithm))
        except Refused as error:
            variant, _, problem = str(error).partition("].")
            yield f"{location}{variant}].", problem
            continue
        for setting, problem in errors:
            values = [f"{name}={value}" for name, value in setting["columns"].items()]
            yield f"{location}[{', '.join([setting['variant'], *values])}].", problem


def modules_of(algorithm_names: Collection[str], problem_names: Collection[str]) -> list[str]:
    """Return the modules that jobs load by the names of algorithms and problems.

    They are the algorithms and problems, the attacks that bound the privacy loss of the algorithms
    from below, and the data sets that audits of the problems try.
    """
    return [
        *map(algorithms.module_of, algorithm_names),
        *map(problems.module_of, problem_names),
        *lower_bounds.modules_of(map(algorithms.load, algorithm_names)),
        *map(universes.module_name, problem_names),
    ]


def expand(experiment: Experiment, name: str, algorithm: str, config: Config) -> dict[str, Any]:
    """Expand one algorithm of an experiment to a cell with all its settings."""
    reduced = experiment.smoke if config.scale == "smoke" else Smoke()
    grids = {key: reduced.axes.get(key, axis.values) for key, axis in experiment.axes.items()}
    parts = experiment.model_dump(include={*SECTIONS} - {"algorithm"}, exclude_none=True)
    base = {**parts, "algorithm": {}}
    settings: list[dict[str, Any]] = []
    for variant, variant_model in experiment.algorithms[algorithm].items():
        for point in product(*grids.values()):
            columns = dict(zip(grids, point, strict=True))
            changes = {experiment.axes[key].set: value for key, value in columns.items()}
            # Variants override axes: a variant with one step keeps its horizon on an axis of
            # horizons.
            try:
                setting = _patched(base, {**reduced.set, **changes, **variant_model.set})
            except InvalidInput as error:
                raise ConfigurationError([f"[{variant}].{error}"]) from error
            if experiment.unaccounted_data_use:
                setting["unaccounted_data_use"] = list(experiment.unaccounted_data_use)
            if not experiment.intermediate_settings.items() <= columns.items():
                setting["intermediate"] = False
            if tuned := variant_model.tuned:
                measure = dict(zip(("quantity", "metric"), tuned.measure, strict=True))
                setting["tuned"] = {**tuned.model_dump(exclude={"measure"}), **measure}
            interpretation = variant_model.interpretation
            labels = {"columns": columns, "variant": variant, "interpretation": interpretation}
            settings.append(labels | setting)
    special = experiment.model_dump(include={"divergence", "lower_bounds"}, exclude_defaults=True)
    if experiment.averages:
        special["averages"] = [list(measure) for measure in experiment.averages]
    iterations = experiment.iterations
    if iterations == "all":
        iterations = range(1, max(setting["horizon"] for setting in settings) + 1)
    cell_name = f"{name} {algorithm}"
    groups = {"data": name, "graph": name, "noise": cell_name, "sampling": cell_name}
    for stream, group in experiment.shared_streams.items():
        groups[stream] = group if isinstance(group, str) else group.get(algorithm, groups[stream])
    return {
        "experiment": name,
        "algorithm": algorithm,
        "seed": config.seed,
        "runs": config.runs or reduced.runs or experiment.runs,
        "runs_per_batch": reduced.runs_per_batch or experiment.runs_per_batch,
        "measures": [list(measure) for measure in experiment.measures],
        "iterations": list(iterations),
        "groups": groups,
        "settings": settings,
        **special,
    }


def _patched(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting with changed values; it shares its unchanged mappings with ``base``."""
    patched = base
    for path, value in changes.items():
        keys = path.split(".")
        require(
            keys[0] in SECTIONS, "set", path, f"one of {', '.join(SECTIONS)}, or a key of these"
        )
        patched = _with(patched, path, keys, value)
    for key in ("problem", "network", "budget"):
        require(isinstance(patched[key], dict), key, patched[key], "a mapping")
    arguments.whole("horizon", patched["horizon"], 1, MAX_HORIZON)
    delta = resolve_delta(
        patched["budget"]["delta"],
        agents=patched["network"]["agents"],
        records=patched["problem"].get("records", 1),
    )
    return {**patched, "budget": {**patched["budget"], "delta": delta}}


def _with(section: Any, path: str, keys: list[str], value: Any) -> dict[str, Any]:
    """Return a section in which the value at some nested keys is changed."""
    require(isinstance(section, Mapping), path, section, "a section with keys")
    key, *inner_keys = keys
    if inner_keys:
        value = _with(section.get(key, {}), path, inner_keys, value)
    return {**section, key: value}
