"""Build the setting that the options of a command describe, and describe it in words."""

import inspect
import json
import re
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from ..common import yamls
from ..common.errors import InvalidInput, Refused, arguments, require, shortened
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
MISSING = re.compile(r"^(\S+): missing, .*")
"""Error line of a parameter that has no default."""


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
    stated = getattr(sys.modules[algorithms.load(name).__module__], "EXAMPLE", {})
    stated = {"problem": stated} if isinstance(stated, str) else stated
    problem = examples.get(stated.get("problem"), stated)
    parameters = stated.get("parameters", {}).items()
    changes = [f"algorithm.{key}={json.dumps(value)}" for key, value in parameters]
    return {**stated, **problem, "set": [*problem.get("set", ()), *changes]}


def plan(options: Namespace) -> tuple[dict[str, Any], Prepared, SettingParts]:
    """Return the cell that the options describe, its prepared data, and its setting."""
    cell = _cell(options)
    (spec,) = cell["settings"]
    prepared = {}
    if "prepared" in spec["problem"]:
        name, agents = spec["problem"]["name"], spec["network"]["agents"]
        prepared[synthetic.NAME] = synthetic.rows_of_setting(name, spec["problem"], agents)
    environment = environment_of(spec, prepared)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    problem, network = environment.problem(streams), environment.network(streams)
    algorithm = setting_of(cell["algorithm"], spec).algorithm
    for name, (_, largest) in unstable_steps(algorithm, problem).items():
        spec["algorithm"].setdefault(name, largest / 2.0)
    setting = setting_of(cell["algorithm"], spec)
    return cell, prepared, (setting.algorithm, problem, network, setting.budget, setting.horizon)


def _cell(options: Namespace) -> dict[str, Any]:
    """Return the validated cell of one setting, with the keys of the workflow's cells."""
    example = example_of(options.algorithm)
    if options.problem not in (None, example.get("problem", DEFAULTS["problem"])):
        example = {}
    stated = {key: value for key, value in vars(options).items() if value is not None}
    values = {**DEFAULTS, **example, **stated}
    changes: dict[str, dict[str, object]] = {"algorithm": {}, "problem": {}, "network": {}}
    for text in [*example.get("set", ()), *options.set]:
        part, key, value = _assignment(text)
        changes[part][key] = value
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
    try:
        require_settings(cell)
    except Refused as error:
        lines = [MISSING.sub(r"\g<0>: --set \1=VALUE", line) for line in error.lines]
        raise Refused(lines) from None
    return {**cell, "iterations": list(range(1, values["horizon"] + 1))}


def _assignment(text: str) -> tuple[str, str, object]:
    """Return the three parts of a text ``PART.KEY=VALUE``; the value is JSON or a text."""
    path, equals, value = text.partition("=")
    part, _, key = path.partition(".")
    is_complete = part in ("algorithm", "problem", "network") and bool(key and equals)
    expected = "PART.KEY=VALUE with PART algorithm, problem or network"
    require(is_complete, "--set", text, expected)
    try:
        return part, key, json.loads(value)
    except json.JSONDecodeError:
        return part, key, value


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
            source = inspect.getsourcefile(algorithms.load(options.algorithm))
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
    texts = {
        name: rounded_up(value) if name == "noise" else f"{value:.4g}"
        for name, value in values.items()
        if isinstance(value, float)
    }
    stated = {name: value for name, value in values.items() if value is not None} | texts
    return ", ".join(f"{name}={text}" for name, text in stated.items())
