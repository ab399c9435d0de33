"""Run, audit, describe and compare algorithms from the command line."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from .. import __version__, privacy
from ..api.extras import how_to_install
from ..api.json_values import to_json
from ..api.terminal import first_sentence, rendered, with_inherited_parameters
from ..common import yamls
from ..common.errors import (
    Diverged,
    InvalidInput,
    Refused,
    arguments,
    one_line,
    require,
    shortened,
)
from ..common.secrets import redacted
from ..common.spelling import ONE_OF, spelling_suggestion
from ..core import algorithms, problems, synthetic
from ..core.algorithms.base import parameters, step_parameters, unstable_steps
from ..core.networks import default_parameters
from ..core.randomness import Streams
from ..core.simulation import BLOCK
from ..reproduction.experiments.cells import environment_of, run_cell, setting_of
from ..reproduction.experiments.checks import (
    MAX_SIZES,
    integer_errors,
    require_settings,
    wrong_horizon,
)
from ..reproduction.experiments.quantities import quantities_of
from ..reproduction.studies.reproduction import install_hint, reproduce
from .completion import SHELLS, completion_script

OUT = Console()
ERR = Console(stderr=True)
MAX_LINES = 20
"""Errors of one configuration that are printed; the others are counted."""
MAX_MESSAGE = 10_000
"""Characters of an error message that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``private-consensus`` and return its exit code.

    The code is 0 without errors and 2 for invalid input. It is 1 if ``compare`` finds changed
    numbers, ``audit`` evidence against a claim, or ``check`` errors.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return options.command(options) or 0
    except InvalidInput as error:
        lines = str(error).splitlines()
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]
        hints = [spelling_suggestion(error), _install_hint(error)]
        _print_error("; ".join(filter(None, [*lines, *hints])))
        return 2
    except ModuleNotFoundError as error:
        if (line := how_to_install(error)) is None:
            raise
        if hasattr(options, "source") and options.source != "surrogate":
            line += "; without data sets: --source surrogate"
        _print_error(line)
        return 2
    except (MemoryError, OSError) as error:
        reason = "not enough memory: " if isinstance(error, MemoryError) else ""
        _print_error(f"{reason}{error}")
        return 2


def _install_hint(error: InvalidInput) -> str:
    """Return how to install the study that defines an unknown algorithm; else an empty text."""
    is_unknown = error.key in ("algorithm.name", "NAME") and error.expected.startswith(ONE_OF)
    return install_hint(error.value) if is_unknown and isinstance(error.value, str) else ""


def _print_error(message: str) -> None:
    """Print one line without secrets and control characters to standard error."""
    line = shortened(redacted(one_line(message)), MAX_MESSAGE)
    print(f"private-consensus: {line}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="private-consensus", description=__doc__)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(command=None)
    defaults = _defaults()
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, run: Callable, text: str, **preset: Any) -> Callable:
        """Add a command, and return the function that adds its options.

        Parameters
        ----------
        name : str
            Name of the command.
        run : callable
            Function of the parsed options; returns the exit code, or None for 0.
        text : str
            Help of the command.
        **preset
            Options that the command does not have on the command line.

        Returns
        -------
        callable
            ``add_argument`` of the command.
        """
        command = commands.add_parser(name, help=text)
        command.set_defaults(command=run, **preset)
        return command.add_argument

    add("list", _list, "list algorithms, problems and prepared data")

    option = add("describe", _describe, "describe an algorithm or a problem")
    option("name", help="name of an algorithm or of a problem")

    option = add("run", _run, "run an algorithm on a problem")
    _add_setting(option)
    option("--runs", type=int, help=f"default {RUNS}; fewer for more than {FEW_AGENTS} agents")
    option("--metric", help="metric of the problem, or value (default: the first metric)")
    option("--quantity", help="measured quantity of the algorithm (default: released)")

    option = add(
        "audit", _audit, "run an algorithm on neighbouring data sets and test its privacy claim",
        metric=None, quantity=None,
    )  # fmt: skip
    _add_setting(option)
    of_audit = defaults["audit"]
    option("--runs", type=int, default=of_audit["runs"], help="maximum number of runs per data set")
    option(
        "--confidence", type=float, default=of_audit["confidence"],
        help="joint confidence of all tests of the audit",
    )  # fmt: skip

    option = add(
        "observers", _observers, "compute the privacy loss to observers of a part of the messages",
        runs=1, metric=None, quantity=None,
    )  # fmt: skip
    _add_setting(option)
    option("--observer", type=int, help="agent to which the loss of each other agent is listed")

    option = add("privacy", _privacy, "compute epsilon from noise, or noise from epsilon")
    option(
        "--mechanism",
        choices=("gaussian", "laplace"),
        default="gaussian",
        help="distribution of the noise",
    )
    option("--sensitivity", type=float, default=1.0, help="l2 norm (gaussian) or l1 norm (laplace)")
    option("--count", type=int, default=1, help="number of composed releases")
    option("--delta", type=float, default=defaults["delta"], help="delta of the composition")
    option("--scale", type=float, help="standard deviation, or scale of the Laplace noise")
    option("--epsilon", type=float, help="privacy budget for which the scale is computed")

    option = add("counterexample", _counterexample, "compute a counter-example to a statement")
    option("id", nargs="?", help="number of the erratum, e.g. E0.1 (default: list all)")

    option = add("theorem", _theorem, "test a numbered statement of a paper")
    option("computation", help="module.function, e.g. gradient_descent.theorem_1")

    option = add("data", _data, "list data sets with source, licence and checksum")
    _add_data_options(option)
    option("--cache", default=CACHE, help="folder of earlier downloads")

    option = add("new-algorithm", _new_algorithm, "write the file, test and entry of an algorithm")
    option("name", help="name of the algorithm")
    option("--package", metavar="FOLDER", help="write a separate package to this folder")

    option = add("rank", _rank, "rank an algorithm, or submitted results, among all others", seed=0)
    option(
        "entries", nargs="+", metavar="NAME|FILE.parquet",
        help="algorithm to run, or file of submitted results",
    )  # fmt: skip
    option("--scale", default="smoke", help="scale of the design (default: smoke)")
    option("--design", help=f"file of the design (default: {DESIGN}, or that of this package)")
    option("--against", metavar="FILE", help="results of the other methods, not run again")
    option("--out", metavar="FILE.parquet", help="write the results of NAME to submit them")
    _add_data_options(option)

    option = add("compare", _compare, "compare a run with the reference results")
    option("run", nargs="?", default="results/paper", help="folder of the run")
    option("--reference", default="results/reference", help="folder of the reference results")
    option("--exact", action="store_true", help="compare all values to a relative 1e-6")

    option = add("schema", _schema, "write the JSON schemas of the configuration for editors")
    option("folder", nargs="?", default="config/schemas", help="folder of the schemas")

    option = add("migrate", _migrate, "replace keys of an earlier release in configuration files")
    option("files", nargs="+", metavar="FILE", help="files of config/papers")

    option = add("profile", _profile, "list the jobs of a run with the largest CPU time")
    option("run", nargs="?", default="results/paper", help="folder of the run")
    option("--count", type=int, default=10, help="number of jobs")

    option = add("completion", _completion, "print the completion script of a shell")
    option("shell", choices=SHELLS, help="shell that reads the script")

    option = add("init", _init, "write a study of your own to a new folder")
    option("study", metavar="STUDY", help="new folder; its name names the study")

    option = add("check", _check, "validate a configuration without running it")
    option(
        "path", metavar="PATH", nargs="?", default=".",
        help="folder of a study, or a file of config/papers (default: this folder)",
    )  # fmt: skip
    option("--scale", help="scale of the settings (default: that of the configuration)")

    option = add("reproduce", _reproduce, "compute figures, claims and audits of a study")
    option("study", metavar="STUDY", nargs="?", default=".", help="folder of the study")
    option("--scale", help="smoke for a small run (default: that of the configuration)")
    option("--cores", type=int, default=os.cpu_count() or 1, help="parallel jobs")

    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _completion(options) -> None:
    """Print the completion script of a shell."""
    settings = dict.fromkeys(("run", "audit", "observers", "rank"), algorithms.names())
    names = {**settings, "describe": [*algorithms.names(), *problems.names()]}
    script = completion_script(_parser(), options.shell, names)
    contents = {"shell": options.shell, "script": script}
    _emit(options, contents, script.rstrip("\n"))


def _defaults() -> dict[str, Any]:
    """Return the default delta, and runs and confidence of an audit, from ``defaults.yaml``."""
    return yamls.read(Path(__file__).parents[1] / "api" / "defaults.yaml")


MEANS = "mean_estimation"
DESIGN = "config/comparison.yaml"
CACHE = ".cache/private-consensus"
SOURCES = ("auto", "official", "surrogate")
RUNS = 20
"""Default number of runs."""
FEW_AGENTS = 1000
"""Largest number of agents for which ``RUNS`` runs are the default and a batch has full size."""


def _default_runs(agents: int) -> int:
    """Return the default number of runs, which decreases with the number of agents; at least 2.

    With more agents, a run takes longer and a mean over agents varies less.
    """
    return max(2, RUNS * FEW_AGENTS // max(FEW_AGENTS, agents))


def _block(agents: int) -> int:
    """Return the number of runs per batch, which decreases with the number of agents."""
    return max(1, BLOCK * FEW_AGENTS // max(FEW_AGENTS, agents))


def _fill_from_example(options) -> None:
    """Set missing options to the values of the algorithm's example, or to the general defaults.

    The example is used if it has the requested problem.
    """
    example = _example_setting(options.algorithm)
    if options.problem not in (None, example.get("problem", MEANS)):
        example = {}
    general: dict[str, Any] = {
        "network": "ring", "agents": 10, "epsilon": 1.0, "delta": _defaults()["delta"],
        "horizon": 50, "problem": MEANS, "quantity": "released", "metric": None,
    }  # fmt: skip
    defaults = {**general, **example}
    for key in general:
        if getattr(options, key) is None:
            setattr(options, key, defaults[key])
    totals = defaults.get("set_per_agent", {})
    parameters = {key: value * max(options.agents, 1) for key, value in totals.items()}
    parameters |= defaults.get("set", {})
    assignments = [f"{path}={json.dumps(value)}" for path, value in parameters.items()]
    options.set = [*assignments, *options.set]


def _example_setting(name: str) -> dict[str, Any]:
    """Return the example of an algorithm, with the keys of ``examples.yaml``.

    A module of another package states it in ``EXAMPLE``, as for the audit: the name of a problem,
    or a mapping with problem, agents, horizon and parameters.
    """
    examples = yamls.read(Path(__file__).parent / "examples.yaml")
    for example in examples:
        if name in example.get("algorithms", ()):
            return example
    stated = getattr(import_module(algorithms.module_of(name)), "EXAMPLE", None)
    stated = {"problem": stated} if isinstance(stated, str) else stated
    if not isinstance(stated, Mapping):
        return {}
    for example in examples:
        if stated.get("problem") == example.get("example", ""):
            sizes = {key: stated[key] for key in ("agents", "horizon") if key in stated}
            parameters = stated.get("parameters", {}).items()
            values = {f"algorithm.{key}": value for key, value in parameters}
            return {**example, **sizes, "set": {**example.get("set", {}), **values}}
    return {}


def _add_setting(option: Callable) -> None:
    """Add the options of one setting; defaults come from the example of the algorithm."""
    option("algorithm", help="name of the algorithm")
    option("--problem", help="problem to solve (default: the example of the algorithm)")
    option("--network", help="family of the communication graph, e.g. ring")
    option("--agents", type=int, help="number of agents")
    option("--epsilon", type=float, help="epsilon of the budget; inf: no privacy")
    option("--delta", type=float, help="delta of the budget")
    option("--horizon", type=int, help="number of iterations")
    option("--seed", type=int, default=0, help="seed of all random values (default: 0)")
    option(
        "--set", action="append", default=[], metavar="PART.KEY=VALUE",
        help="set algorithm.KEY, problem.KEY or network.KEY; may be repeated",
    )  # fmt: skip
    _add_data_options(option)


def _add_data_options(option: Callable) -> None:
    """Add the arguments that state where data sets come from."""
    option("--mirror", help="folder or URL with the publishers' files")
    option(
        "--source", choices=SOURCES, default="auto",
        help="surrogate: sampled records in place of the data, without a download",
    )  # fmt: skip


def _emit(options, contents: Mapping[str, Any], *output: str | Table) -> None:
    """Print the result of a command as JSON, or as lines and tables.

    Parameters
    ----------
    options : Namespace
        Options of the command; ``json`` selects JSON.
    contents : mapping
        The result as values for JSON.
    *output : str or Table
        The result as lines and tables.
    """
    if options.json:
        print(to_json(contents))
        return
    for item in output:
        OUT.print(item) if isinstance(item, Table) else print(item)


@contextmanager
def _progress(description: str, total: int | None = None) -> Generator[Callable[..., None]]:
    """Show on a terminal that a computation runs, and yield the function that updates the bar.

    Parameters
    ----------
    description : str
        Name of the computation.
    total : int, optional
        Number of steps; by default the length is unknown.
    """
    with Progress(console=ERR, transient=True, disable=not ERR.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(description, total=total))


def _schema(options) -> None:
    from ..common.provenance import write_text
    from ..reproduction.experiments.files import schemas

    folder, written = arguments.path("folder", options.folder, "a folder"), schemas()
    if folder.is_dir():
        files = {path.name for path in folder.iterdir()}
        expected = "a new folder, an empty one, or one with nothing but schemas"
        foreign = files - {f"{name}.json" for name in written}
        require(not foreign, "folder", options.folder, expected)
    for name, schema in written.items():
        write_text(folder / f"{name}.json", json.dumps(schema, indent=1) + "\n")
    files = [folder / f"{name}.json" for name in written]
    _emit(options, {"files": files}, *map(str, files))


def _list(options) -> int:
    """Print algorithms, problems and prepared data; return 1 if two algorithms share a name."""
    from ..reproduction.datasets import PREPARATIONS

    tables = {
        "algorithm": {
            name: _about(sys.modules[algorithms.load(name).__module__])
            for name in algorithms.names()
        },
        "problem": {name: _about(problems.load(name)) for name in problems.names()},
        "prepared data": {name: p.because for name, p in PREPARATIONS.items()},
    }
    unusable, collisions = algorithms.unusable(), algorithms.collisions()

    contents = {title.replace(" ", "_"): rows for title, rows in tables.items()}
    output = [_table([title, ""], list(rows.items())) for title, rows in tables.items()]
    if unusable:
        output.append(_table(["unused entry point", "reason"], list(unusable.items())))
    _emit(options, {**contents, "unusable": unusable}, *output)
    for name, reason in collisions.items():
        _print_error(f"entry point {name}: {reason}")
    return 1 if collisions else 0


def _describe(options) -> None:
    name = options.name
    algorithm: dict[str, Any] = {}
    output: list[str | Table] = []
    if name in algorithms.names():
        built = algorithms.load(name)
        module, docstring = sys.modules[built.__module__], with_inherited_parameters(built)
        fields = dataclasses.fields(built)
        needed = any(field.default is dataclasses.MISSING for field in fields)
        described = built if needed else built()
        uses = [f"where the problem computes it from data: {use}" for use in described.uses]
        defaults = {field.name: _default(field) for field in fields}
        algorithm = {"relation": str(described.relation), "parameters": defaults}
        output.append(f"\nNeighbouring relation: {algorithm['relation']}")
        output.append(_table(["parameter", "default"], list(defaults.items())))
    elif name in problems.names():
        module, described = problems.load(name), problems.class_of(name)
        docstring = inspect.getdoc(module.build) or ""
        stated = described.from_data.items()
        uses = [f"for algorithms that use {key}: {text}" for key, text in stated]
    else:
        names = ", ".join(algorithms.names() + problems.names())
        raise InvalidInput("NAME", name, f"one of {names}")
    texts = [rendered(inspect.getdoc(module) or ""), rendered(docstring)]
    not_charged = [*described.oracles, *uses]
    contents = {
        "name": name,
        "kind": "algorithm" if algorithm else "problem",
        "description": "\n\n".join(texts),
        "not_charged": not_charged,
        **algorithm,
    }
    lines = [
        *(text + "\n" for text in texts),
        *(f"Not covered by epsilon: {use}" for use in not_charged),
    ]
    _emit(options, contents, *lines, *output)


def _default(field: dataclasses.Field) -> str:
    return "required" if field.default is dataclasses.MISSING else repr(field.default)


def _run(options) -> None:
    cell, prepared, setting = _plan(options)
    metric = cell["measures"][0][1]
    title = f"{options.algorithm}, {options.runs} runs"
    with _progress(title, options.runs) as update, _readable_errors(options):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                runs, private = run_cell(
                    cell, prepared, lambda done, of: update(completed=done, total=of)
                )
        except Diverged as error:
            raise InvalidInput(
                "run", f"{options.algorithm} diverged: {error}", _stable_steps(setting)
            ) from error
    expected = f"a metric of the problem: {cell['measures'][0][0]} is an array"
    require(runs["value"].dtype.is_numeric(), "--metric", metric, expected)
    error = (pl.col("value").std(ddof=1).fill_null(0.0) / pl.len().sqrt()).alias("error")
    mean_values = runs.group_by("t").agg(pl.col("value").mean(), error).sort("t")
    row = private.row(0, named=True)
    names = ("claimed", "formula", "accountant", "lower")
    stated = ("delta", "accountant", "lower_bound_method", "relation", "verdict")
    contents = {
        "setting": _setting_contents(setting),
        "runs": runs["run"].n_unique(),
        "quantity": cell["measures"][0][0],
        "metric": metric,
        "course": mean_values.rename({"value": "mean", "error": "standard_error"}).to_dicts(),
        "epsilon": {name: row[f"epsilon_{name}"] for name in names},
        **{name: row[name] for name in stated},
        "diverged": _has_diverged(mean_values["value"].to_numpy()),
    }
    _emit(options, contents, *_run_output(setting, mean_values, contents))
    if contents["diverged"]:
        first, last = mean_values["value"][0], mean_values["value"][-1]
        text = f"{options.algorithm} diverged: {metric} grew from {first:.3g} to {last:.3g}"
        _print_error(f"{text}; expected {_stable_steps(setting)}")


def _run_output(
    setting: tuple, mean_values: pl.DataFrame, contents: Mapping[str, Any]
) -> list[str | Table]:
    """Return setting, measurements and privacy of a run as lines and tables."""
    metric, epsilon = contents["metric"], contents["epsilon"]
    rows = mean_values[_log_spaced(mean_values.height, 12)]
    measurements = _table(
        ["t", metric, "standard error"],
        [(str(t), f"{m:.4g}", f"{e:.2g}") for t, m, e in rows.iter_rows()],
        caption=f"mean of {contents['runs']} runs",
    )
    method = contents["lower_bound_method"]
    formula = "none" if np.isnan(epsilon["formula"]) else f"{epsilon['formula']:.4g}"
    losses = _table(
        ["privacy", "epsilon"],
        [
            ("claimed", f"{epsilon['claimed']:.4g}"),
            ("by the paper's formula", formula),
            (f"by the accountant ({contents['accountant']})", f"{epsilon['accountant']:.4g}"),
            (f"by a known attack, at least ({method})", f"{epsilon['lower']:.4g}"),
        ],
        caption=f"delta = {contents['delta']:g}; {contents['relation']}; {contents['verdict']}",
    )
    return [*_setting_lines(setting), measurements, losses]


GROWTH = 1e6
"""Growth of a metric, relative to its first value, from which a run has diverged."""


def _has_diverged(values: np.ndarray) -> bool:
    """Return True if the last value of a metric is not finite, or much larger than the first."""
    last, first = abs(float(values[-1])), abs(float(values[0]))
    return not np.isfinite(last) or last > GROWTH * max(first, 1.0)


def _stable_steps(setting: tuple) -> str:
    """Return the largest stable step sizes of gradient descent in words."""
    algorithm, problem = setting[0], setting[1]
    names = step_parameters(algorithm)
    if not names or getattr(problem, "smoothness", None) is None:
        return "parameters with which the algorithm converges"
    largest = 2.0 / float(np.max(problem.smoothness))
    steps = " and ".join(f"--set algorithm.{name}=VALUE" for name in names)
    return f"{steps} below 2/L = {largest:.4g}, the largest stable step of gradient descent"


def _set_default_steps(cell: dict[str, Any], prepared: Mapping[str, Any]) -> None:
    """Replace default step sizes above 2/L by the default of their range, in units of 1/L.

    A step size that the user or the example states is not changed.
    """
    algorithm, problem, *_ = _first_setting(cell, prepared)
    (setting,) = cell["settings"]
    for name, (_, largest) in unstable_steps(algorithm, problem).items():
        if name not in setting["algorithm"]:
            default = algorithm.ranges[name].default
            setting["algorithm"] = {**setting["algorithm"], name: default * largest / 2.0}


def _example(options) -> tuple[tuple, float]:
    """Return setting and delta of the example of an algorithm.

    Options that would change the example are refused.
    """
    from ..audits.examples import examples

    for key in ("network", "agents", "epsilon", "delta", "horizon", "set"):
        value = getattr(options, key)
        require(not value, f"--{key}", value, "--problem, too: without it, an example is audited")
    (example,) = examples(options.algorithm)
    return example.world, example.budget.delta


def _audit(options) -> int:
    """Audit an algorithm; return 1 for evidence against its claim or declaration, else 0."""
    from .. import audit

    if options.problem is None:
        setting, delta = _example(options)
    else:
        *_, setting = _plan(options)
        delta = options.delta
    for line in (
        *integer_errors("--seed", options.seed, 0),
        *integer_errors("--runs", options.runs, 1, MAX_SIZES["runs"]),
    ):
        raise Refused([line])
    title = f"audit of {options.algorithm}, {options.runs} runs of two data sets"
    with _progress(title, options.runs) as update, _readable_errors(options):
        result = audit(
            *setting, runs=options.runs, confidence=options.confidence, delta=delta,
            seed=options.seed, progress=lambda done, of: update(completed=done, total=of),
        )  # fmt: skip
        algorithm, problem, network, budget, horizon = setting
        algorithm = algorithm.calibrate(budget, problem, network, horizon)
        setting = algorithm, problem, network, budget, horizon
    findings = [{"kind": finding.kind, "text": finding.text} for finding in result.findings]
    numbers = (
        "claimed", "permitted", "delta", "declared", "lower", "ceiling", "confidence", "runs"
    )  # fmt: skip
    contents = {
        "setting": _setting_contents(setting),
        **{name: getattr(result, name) for name in numbers},
        "findings": findings,
        "verdict": result.verdict,
        "privacy": result.privacy_verdict,
        "lines": [list(line) for line in result.lines()],
    }
    _emit(options, contents, *_setting_lines(setting), _table(["audit", ""], result.lines()))
    return 1 if result.flagged else 0


def _observers(options) -> None:
    from ..audits.views import by_distance, epsilon_by_observer, observation

    *_, setting = _plan(options)
    algorithm, problem, network, budget, horizon = setting
    network = network.of_run(0)
    expected = "at least 2 agents: an agent and its observer"
    require(network.n_agents >= 2, "network.agents", network.n_agents, expected)
    finite = "a finite budget, since an algorithm without noise is not private"
    require(budget.private, "budget.epsilon", budget.epsilon, finite)
    algorithm = algorithm.calibrate(budget, problem, network, horizon)
    with _progress(f"observers of {options.algorithm}"), _readable_errors(options):
        observed = observation(algorithm, problem, network, horizon)
        if options.observer is None:
            columns = ("observer", "distance", "pair")
            rows = epsilon_by_observer(observed, budget.delta)
        else:
            columns = ("agent", "distance")
            rows = by_distance(observed, budget.delta, options.observer)
    keys = (*columns, "formula", "guarantee", "rule")
    cells = [[_short_text(row[key]) for key in keys] for row in rows]
    caption = f"epsilon at delta = {budget.delta:g}; {algorithm.relation}"
    if observed.reason:
        caption += f"; no formula: {observed.reason}"
    table = _table([*columns, "fixed inputs", "guaranteed", "rule"], cells, caption)
    contents = {
        "setting": _setting_contents(setting),
        "delta": budget.delta,
        "relation": str(algorithm.relation),
        "observers": [{key: row[key] for key in keys} for row in rows],
        "no_formula": observed.reason,
    }
    _emit(options, contents, *_setting_lines(setting), table)


def _setting_lines(setting: tuple[Any, Any, Any, Any, int]) -> list[str]:
    """Return lines with algorithm, problem, network, budget and horizon; warn of steps above 2/L.

    Parameters
    ----------
    setting : tuple
        Algorithm, problem, network, budget and horizon.

    Returns
    -------
    list of str
    """
    algorithm, problem, _, budget, horizon = setting
    contents = _setting_contents(setting)
    graph = contents["network"]
    for name, (value, largest) in unstable_steps(algorithm, problem).items():
        text = (
            f"warning: {name}={value:.4g} is above 2/L = {largest:.4g}, the largest stable step of "
            f"gradient descent; set a smaller one by --set algorithm.{name}=VALUE"
        )
        print(text, file=sys.stderr)
    return [
        f"algorithm {contents['algorithm']}: {_assignments(parameters(algorithm))}",
        f"problem {contents['problem']}: {_assignments(contents['problem_parameters'])}",
        f"network: {graph['agents']} agents, {graph['edges']} edges",
        f"budget: epsilon={budget.epsilon:g}, delta={budget.delta:g}; horizon={horizon}",
    ]


def _setting_contents(setting: tuple[Any, Any, Any, Any, int]) -> dict[str, Any]:
    """Return the names and numbers of a setting, for JSON."""
    algorithm, problem, network, budget, horizon = setting
    graph = network.of_run(0)
    numbers = {
        name: value
        for name, value in vars(problem).items()
        if isinstance(value, int | float) and not name.startswith("_")
    }
    count = getattr(problem, "records", None)
    records = {} if count is None else {"records": count}
    return {
        "algorithm": type(algorithm).__name__,
        "parameters": {
            name: getattr(value, "scale", value) for name, value in parameters(algorithm).items()
        },
        "problem": type(problem).__name__,
        "problem_parameters": {"dim": problem.dim, **records, **numbers},
        "network": {"agents": graph.n_agents, "edges": int(np.sum(graph.degrees)) // 2},
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "horizon": horizon,
    }


def _assignments(values: Mapping[str, Any]) -> str:
    """Return values as ``name=value`` pairs, without values that are None."""
    stated = {name: value for name, value in values.items() if value is not None}
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in stated.items()
    )


def _short_text(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def _readable_errors(options) -> Generator[None]:
    """Convert errors of an algorithm that cannot run on a problem to a message of one line.

    For an algorithm of another package, the message names the line of its code.
    """
    try:
        yield
    except InvalidInput:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        module = algorithms.module_of(options.algorithm)
        source = inspect.getsourcefile(import_module(module))
        is_foreign = not module.startswith(f"{__package__}.")
        own_frames = [frame for frame in frames if is_foreign and frame.filename == source]
        frame = (own_frames or frames)[-1]
        location = f"{Path(frame.filename).name}, line {frame.lineno}"
        reason = shortened(f"{type(error).__name__} in {location}: {error}", 200)
        if own_frames:
            expected = "an algorithm that runs on this problem, network and budget"
            raise InvalidInput(options.algorithm, reason, expected) from error
        expected = f"a problem, network and budget on which {options.algorithm} can run"
        raise InvalidInput("--problem", options.problem, f"{expected} ({reason})") from error


def _plan(options) -> tuple[dict[str, Any], dict[str, Any], tuple]:
    """Return the cell that the options describe, its prepared data, and its setting."""
    _fill_from_example(options)
    if options.runs is None:
        options.runs = _default_runs(options.agents)
    cell = _cell(options)
    prepared = _prepared(cell, options)
    with _readable_errors(options):
        _set_default_steps(cell, prepared)
    return cell, prepared, _first_setting(cell, prepared)


def _first_setting(cell: Mapping[str, Any], prepared: Mapping[str, Any]):
    """Return algorithm, problem, network, budget and horizon of the first run of a cell.

    Parameters
    ----------
    cell : mapping
        One setting.
    prepared : mapping
        Data sets that the setting needs.
    """
    (spec,) = cell["settings"]
    environment = environment_of(spec, prepared)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    setting = setting_of(cell["algorithm"], spec)
    problem, network = environment.problem(streams), environment.network(streams)
    return setting.algorithm, problem, network, setting.budget, setting.horizon


def _cell(options) -> dict[str, Any]:
    changes: dict[str, dict] = {"algorithm": {}, "problem": {}, "network": {}}
    for text in options.set:
        path, equals, value = text.partition("=")
        component, _, key = path.partition(".")
        expected = "PART.KEY=VALUE with PART algorithm, problem or network"
        require(bool(equals and key) and component in changes, "--set", text, expected)
        changes[component][key] = _value(value)
    algorithms.load(options.algorithm)
    module = problems.load(options.problem)
    metrics = module.METRICS
    metric = options.metric or next(iter(metrics))
    metric_names = (*metrics, "value")
    require(metric in metric_names, "--metric", metric, f"one of {', '.join(metric_names)}")
    if options.quantity is not None:
        quantities, quantity = quantities_of(options.algorithm), options.quantity
        require(quantity in quantities, "--quantity", quantity, f"one of {', '.join(quantities)}")
    for line in wrong_horizon(options.horizon):
        raise Refused([line])
    setting = {
        "columns": {},
        "variant": "run",
        "interpretation": "resolved",
        "horizon": options.horizon,
        "budget": {"epsilon": options.epsilon, "delta": options.delta},
        "problem": {"name": options.problem, **module.EXAMPLE, **changes["problem"]},
        "network": {
            "name": options.network,
            "agents": options.agents,
            **default_parameters(options.network, min(options.agents, MAX_SIZES["agents"])),
            **changes["network"],
        },
        "algorithm": changes["algorithm"],
    }
    cell = {
        "experiment": "command line",
        "algorithm": options.algorithm,
        "seed": options.seed,
        "runs": options.runs,
        "runs_per_batch": _block(options.agents),
        "measures": [[options.quantity or "released", metric]],
        "groups": {},
        "iterations": list(range(1, options.horizon + 1)),
        "settings": [setting],
    }
    require_settings(cell)
    return cell


def _prepared(cell, options) -> dict[str, Any]:
    (setting,) = cell["settings"]
    name = setting["problem"].get("prepared")
    if name == synthetic.NAME:
        problem, agents = setting["problem"], setting["network"]["agents"]
        return {name: synthetic.rows_of_setting(problem["name"], problem, agents)}
    return _prepared_data([] if name is None else [name], options)


def _prepared_data(names: Sequence[str], options) -> dict[str, Any]:
    """Return prepared data sets by name, from the sources that the options state."""
    if not names:
        return {}
    from ..reproduction.datasets import PREPARATIONS, Acquisition, acquire, prepare

    data = {}
    for name in names:
        expected = f"{synthetic.NAME} or one of {', '.join(PREPARATIONS)}"
        require(name in PREPARATIONS, "problem.prepared", name, expected)
        cache = Path(CACHE) if options.source == "surrogate" else None  # not read for surrogates
        acquisition = Acquisition(source=options.source, mirror=options.mirror, cache=cache)
        raw, provenance = acquire(PREPARATIONS[name].dataset, acquisition, seed=options.seed)
        if not options.json:
            OUT.print(f"data: {provenance.dataset} ({provenance.source})")
        data[name] = prepare(name, raw, provenance)
    return data


MAX_RELEASES = {"gaussian": 10_000_000, "laplace": 100_000}
"""Maximum number of releases; Laplace losses are convolved on a grid that grows with it."""


def _privacy(options) -> None:
    for line in integer_errors("--count", options.count, 1, MAX_RELEASES[options.mechanism]):
        raise Refused([line])
    if (options.scale is None) == (options.epsilon is None):
        raise Refused(["privacy: state either --scale or --epsilon, not both"])

    def release(scale: float) -> list[privacy.Release]:
        mechanism, sensitivity, count = options.mechanism, options.sensitivity, options.count
        return [privacy.Release(mechanism, sensitivity=sensitivity, scale=scale, count=count)]

    if options.scale is not None:
        require(options.scale > 0, "--scale", options.scale, "a number > 0")
        guarantee = privacy.account(release(options.scale), options.delta)
        contents: dict[str, Any] = {
            "epsilon": guarantee.epsilon,
            "delta": options.delta,
            "accountant": guarantee.method,
            "proven": guarantee.proven,
        }
    else:
        scale = privacy.calibrate(release, privacy.Budget(options.epsilon, options.delta))
        contents = {"scale": scale, "epsilon": options.epsilon, "delta": options.delta}
    texts = {True: "yes", False: "no"}
    rows = [
        (name, f"{value:.6g}" if isinstance(value, float) else texts.get(value, value))
        for name, value in contents.items()
    ]
    _emit(options, contents, _table(["quantity", "value"], rows))


def _counterexample(options) -> None:
    from ..reproduction.statements.counterexamples import COMPUTATIONS, compute

    if options.id is None:
        rows = {erratum: _about(computation) for erratum, computation in COMPUTATIONS.items()}
        _emit(options, rows, _table(["counterexample", "computation"], list(rows.items())))
        return
    with _progress(f"counterexample {options.id}"):
        result = compute(options.id)
    contents = {"id": options.id, **vars(result)}
    numbers = f"{result.claimed:.4g} according to the paper, {result.computed:.4g} computed"
    lines = [result.description, f"{result.quantity}: {numbers}", f"{options.id}: {result.outcome}"]
    _emit(options, contents, *lines)


def _theorem(options) -> None:
    from ..reproduction.statements import compute

    with _progress(f"theorem {options.computation}"):
        result = compute(options.computation)
    lines = [result.description, *map(str, result.parts)]
    contents = {
        "computation": options.computation,
        "parts": [
            {key: getattr(inequality, key) for key in ("quantity", "stated", "measured", "holds")}
            for inequality in result.parts
        ],
        "description": result.description,
        "verdict": result.verdict,
    }
    _emit(options, contents, *lines, f"{options.computation}: {result.verdict}")


def _data(options) -> None:
    from ..reproduction.datasets import Acquisition, summary

    acquisition = Acquisition(
        source=options.source, mirror=options.mirror, cache=Path(options.cache)
    )
    acquisition.check()
    with _progress("data sets"):
        rows = summary(acquisition)
    tables = [_table([row["dataset"], row["title"]], _card(row)) for row in rows]
    _emit(options, {"data_sets": rows}, *tables)


def _new_algorithm(options) -> None:
    from ..comparison.entering import new_algorithm

    folder = options.package or "."
    files = new_algorithm(options.name, folder, package=options.package is not None)
    install = [] if options.package is None else [f"python -m pip install -e {folder}"]
    steps = [
        *install,
        f"python -m pytest {files[1]}",
        f"private-consensus rank {options.name} --scale smoke",
    ]
    lines = [*map(str, files), *(f"next: {step}" for step in steps)]
    _emit(options, {"files": files, "next": steps}, *lines)


def _rank(options) -> None:
    from ..comparison.ranking import HEADS, ranked

    with _progress("") as update:
        result = ranked(
            options.entries, _design(options.design), options.scale,
            against=options.against, out=options.out,
            prepared=lambda names: _prepared_data(names, options),
            progress=lambda problem: update(description=problem),
        )  # fmt: skip
    rows = [dict(zip(HEADS, row, strict=True)) for row in result.rows]
    contents = {"ranking": rows, "caption": result.caption, "not_entered": result.absent}
    lines = [f"not entered: {line}" for line in result.absent]
    _emit(options, contents, *lines, _table(HEADS, result.rows, result.caption))


def _design(path: str | None) -> str:
    """Return the file of the design: the requested file, else that of this folder or package."""
    from ..reproduction.studies.places import HOME

    if path is not None or Path(DESIGN).is_file():
        return path or DESIGN
    return str(HOME / DESIGN)


def _compare(options) -> int:
    from ..publishing import compare

    with _progress("comparison"):
        result = compare(options.run, options.reference, exact=options.exact)
    lists = {key: getattr(result, key) for key in ("machines", "changed", "missing", "verdicts")}
    counts = ", ".join(f"{len(lines)} {key}" for key, lines in lists.items() if key != "machines")
    manner = "to a relative 1e-6" if options.exact else "within Monte-Carlo error"
    lines = [f"{key}: {line}" for key, listed in lists.items() for line in listed]
    lines.append(f"{result.compared} values compared {manner}: {counts}")
    contents = {**lists, "compared": result.compared, "same": result.same}
    _emit(options, contents, *lines)
    return 0 if result.same else 1


def _migrate(options) -> None:
    from ..common.provenance import write_text
    from ..reproduction.experiments.migration import migrated

    rewritten = []
    for file in map(Path, options.files):
        text = file.read_text(encoding="utf-8")
        if (new := migrated(text, str(file))) != text:
            write_text(file, new)
            rewritten.append(str(file))
    lines = [f"{file}: rewritten" for file in rewritten] or ["all files are up to date"]
    _emit(options, {"rewritten": rewritten}, *lines)


def _profile(options) -> None:
    from ..publishing import beyond_limits, profile_table

    table, sentences = profile_table(options.run, options.count), beyond_limits(options.run)
    contents = {"table": table, "beyond_limits": sentences}
    _emit(options, contents, table.rstrip("\n"), *sentences)


def _init(options) -> None:
    """Write a new study, and print its files and the next command."""
    from ..reproduction.studies.writing import write_study

    files = [os.path.relpath(path) for path in write_study(options.study)]
    step = f"private-consensus reproduce {options.study} --scale smoke"
    _emit(options, {"files": files, "next": [step]}, *files, f"Next: {step}")


def _check(options) -> int:
    """Validate a configuration, and print the counts or the errors; return 1 for errors."""
    from ..reproduction.studies.checking import check

    try:
        counts, errors = check(options.path, options.scale), []
    except InvalidInput as error:
        counts, errors = {}, [redacted(line) for line in str(error).splitlines()]
    listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
    lines = errors or [f"The configuration is valid ({listed})"]
    _emit(options, {"valid": not errors, "errors": errors, **counts}, *lines)
    return 1 if errors else 0


def _reproduce(options) -> int:
    """Compute a study, and print the last lines of its summary; return the code of Snakemake."""
    code = reproduce(options.study, options.scale, options.cores, log_to_stderr=options.json)
    from ..report.closing import closing_lines  # with packages of an extra

    summaries = Path(options.study, "results").glob("*/summary.md")
    newest = None if code else max(summaries, key=os.path.getmtime, default=None)
    lines = [] if newest is None else closing_lines(newest.parent)
    output = [] if newest is None else [f"Results: {newest}", *lines]
    _emit(options, {"exit_code": code, "summary": newest, "lines": lines}, *output)
    return code


def _card(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    warning = "SURROGATE, not the real data; " if row["source"] == "surrogate" else ""
    return [
        ("source", f"{row['source']}: {row['where']}, {row['version']}"),
        ("reason", f"{warning}{row['because']}"),
        ("rows, columns", f"{row['rows']:,}, {row['columns']:,}"),
        ("label", f"{row['label']}: {row['label_rate']:.1%}"),
        ("licence", row["licence"]),
        ("needs", row["needs"]),
        ("SHA-256", row["checksum"]),
        ("prepared as", ", ".join(row["preparations"])),
        ("search time", f"{row['seconds']:.1f} s"),
    ]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _about(documented: Any) -> str:
    return first_sentence(inspect.getdoc(documented) or "")


def _log_spaced(count: int, max_count: int) -> list[int]:
    spaced = np.unique(np.geomspace(1, count, max_count).round().astype(int)) - 1
    return [int(i) for i in spaced]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    columns = [Column(title, overflow="fold") for title in titles]
    table = Table(*columns, caption=caption or None, caption_justify="left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
