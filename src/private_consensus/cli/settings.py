"""Build the setting that the options of a command describe, and describe it in words."""

import inspect
import json
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..common import yamls
from ..common.errors import InvalidInput, arguments, require, shortened
from ..core import algorithms, problems, synthetic
from ..core.algorithms.base import Algorithm, parameters, unstable_steps
from ..core.networks import Network
from ..core.problems import Problem
from ..core.randomness import Streams
from ..privacy import Budget
from ..privacy.safe_digits import rounded_up
from ..reproduction.configuration.checks import require_settings
from ..reproduction.results.cells import Prepared, environment_of, setting_of

SettingParts = tuple[Algorithm, Problem, Network, Budget, int]
"""Algorithm, problem, network, budget and horizon."""

DEFAULTS: dict[str, Any] = {
    "problem": "mean_estimation", "network": "ring", "agents": 10, "epsilon": 1.0, "delta": 1e-5,
    "horizon": 50, "runs": 1, "quantity": "released", "metric": None,
}  # fmt: skip
"""Values of options that neither the command nor the example of the algorithm states."""


def example_of(name: str) -> dict[str, Any]:
    """Return the example of an algorithm, with the keys of ``examples.yaml``.

    An algorithm that the file does not contain names a small problem in ``EXAMPLE`` of its module.
    """
    examples = {
        listed: example
        for example in yamls.read(Path(__file__).parent / "examples.yaml")
        for listed in example["names"]
    }
    if name in examples:
        return examples[name]
    stated = getattr(import_module(algorithms.module_of(name)), "EXAMPLE", {})
    stated = {"problem": stated} if isinstance(stated, str) else stated
    problem = examples.get(stated.get("problem"), stated)
    changes = {f"algorithm.{key}": value for key, value in stated.get("parameters", {}).items()}
    return {**stated, **problem, "set": {**problem.get("set", {}), **changes}}


def plan(options: Namespace) -> tuple[dict[str, Any], Prepared, SettingParts]:
    """Return the cell that the options describe, its prepared data, and its setting."""
    cell = _cell(options)
    (spec,) = cell["settings"]
    problem, prepared = spec["problem"], {}
    if "prepared" in problem:
        agents = spec["network"]["agents"]
        rows = synthetic.rows_of_setting(problem["name"], problem, agents)
        prepared = {synthetic.NAME: rows}
    setting = _setting(cell, prepared)
    for name, (_, largest) in unstable_steps(*setting[:2]).items():
        spec["algorithm"].setdefault(name, largest / 2.0)
    return cell, prepared, _setting(cell, prepared)


def _setting(cell: Mapping[str, Any], prepared: Prepared) -> SettingParts:
    """Return the setting of the first run of a cell, which has one setting."""
    (spec,) = cell["settings"]
    environment = environment_of(spec, prepared)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    setting = setting_of(cell["algorithm"], spec)
    problem, network = environment.problem(streams), environment.network(streams)
    return setting.algorithm, problem, network, setting.budget, setting.horizon


def _cell(options: Namespace) -> dict[str, Any]:
    """Return the validated cell of one setting, with the keys of the workflow's cells."""
    example = example_of(options.algorithm)
    if options.problem not in (None, example.get("problem", DEFAULTS["problem"])):
        example = {}
    stated = {key: value for key, value in vars(options).items() if value is not None}
    values = {**DEFAULTS, **example, **stated}
    changes = _changes({**example.get("set", {}), **dict(map(_assignment, options.set))})
    metrics = problems.class_of(values["problem"]).metrics
    metric = values["metric"] or next(iter(metrics))
    arguments.choice("--metric", metric, (*metrics, "value"))
    problem = {"name": values["problem"], **problems.load(values["problem"]).EXAMPLE}
    problem |= changes["problem"]
    if "prepared" in problem:
        arguments.choice("problem.prepared", problem["prepared"], (synthetic.NAME,))
    network = {"name": values["network"], "agents": values["agents"], **changes["network"]}
    setting = {
        "columns": {},
        "variant": "run",
        "interpretation": "resolved",
        "horizon": values["horizon"],
        "budget": {"epsilon": values["epsilon"], "delta": values["delta"]},
        "problem": problem,
        "network": network,
        "algorithm": changes["algorithm"],
    }
    cell = {
        "experiment": "command line",
        "algorithm": options.algorithm,
        "seed": options.seed,
        "runs": values["runs"],
        "measures": [[values["quantity"], metric]],
        "groups": {},
        "settings": [setting],
    }
    require_settings(cell)
    return {**cell, "iterations": list(range(1, values["horizon"] + 1))}


def _assignment(text: str) -> tuple[str, object]:
    """Return path and value of a text ``PART.KEY=VALUE``; the value is JSON or a text."""
    path, equals, value = text.partition("=")
    require(bool(equals), "--set", text, "PART.KEY=VALUE")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value


def _changes(values: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return the changed parameters of algorithm, problem and network, from values by path."""
    changes: dict[str, dict[str, object]] = {"algorithm": {}, "problem": {}, "network": {}}
    for path, value in values.items():
        section, _, key = path.partition(".")
        expected = "PART.KEY with PART algorithm, problem or network"
        require(section in changes and bool(key), "--set", path, expected)
        changes[section][key] = value
    return changes


def readable_errors(command: Callable[[Namespace], Any]) -> Callable[[Namespace], Any]:
    """Convert errors of an algorithm that cannot run on a problem to a message of one line.

    The message names the last executed line of the algorithm's file, if there is one.
    """

    @wraps(command)
    def readable(options: Namespace) -> Any:
        try:
            return command(options)
        except InvalidInput:
            raise
        except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            source = inspect.getsourcefile(import_module(algorithms.module_of(options.algorithm)))
            frames = traceback.extract_tb(error.__traceback__)
            frame = ([frame for frame in frames if frame.filename == source] or frames)[-1]
            location = f"{Path(frame.filename).name}, line {frame.lineno}"
            reason = shortened(f"{type(error).__name__} in {location}: {error}", 200)
            expected = f"an algorithm that can run on the problem, network and budget ({reason})"
            raise InvalidInput("algorithm", options.algorithm, expected) from error

    return readable


def setting_lines(setting: SettingParts) -> list[str]:
    """Describe a setting with calibrated noise, on the graph of the first run."""
    algorithm, problem, network, budget, horizon = setting
    graph = network.of_run(0)
    calibrated = algorithm.calibrate(budget, problem, graph, horizon)
    numbers = {
        name: value
        for name, value in {"records": getattr(problem, "records", None), **vars(problem)}.items()
        if isinstance(value, int | float) and not name.startswith("_")
    }
    return [
        f"algorithm {type(algorithm).__name__}: {_assignments(parameters(calibrated))}",
        f"problem {type(problem).__name__}: {_assignments({'dim': problem.dim, **numbers})}",
        f"network: {graph.n_agents} agents, {int(np.sum(graph.degrees)) // 2} edges",
        f"budget: epsilon={budget.epsilon:g}, delta={budget.delta:g}; horizon={horizon}",
    ]


def _assignments(values: Mapping[str, object]) -> str:
    """Return values as ``name=value`` pairs, without values that are None; noise is rounded up."""
    stated = {
        name: rounded_up(value) if name == "noise" else f"{value:.4g}"
        for name, value in values.items()
        if isinstance(value, float)
    }
    texts = {name: stated.get(name, value) for name, value in values.items() if value is not None}
    return ", ".join(f"{name}={text}" for name, text in texts.items())
