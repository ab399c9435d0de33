"""Build the setting that the options of a command describe, and print it."""

from __future__ import annotations

import inspect
import json
import traceback
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..common import yamls
from ..common.errors import InvalidInput, arguments, require, shortened
from ..core import algorithms, problems, synthetic
from ..core.algorithms.base import Algorithm, parameters, unstable_steps
from ..core.networks import Network, default_parameters
from ..core.problems import Problem
from ..core.randomness import Streams
from ..core.simulation import BLOCK
from ..privacy import Budget
from ..privacy.safe_digits import rounded_up
from ..reproduction.configuration.checks import MAX_SIZES, require_settings
from ..reproduction.results.cells import Prepared, environment_of, setting_of
from .output import OUT
from .parser import CACHE, DELTA, FEW_AGENTS, RUNS

SettingParts = tuple[Algorithm, Problem, Network, Budget, int]
"""Algorithm, problem, network, budget and horizon."""

MEANS = "mean_estimation"


def _fill_from_example(options: Namespace) -> None:
    """Set missing options to the values of the algorithm's example, or to the general defaults."""
    example = example_of(options.algorithm)
    if options.problem not in (None, example.get("problem", MEANS)):
        example = {}
    general: dict[str, object] = {
        "network": "ring", "agents": 10, "epsilon": 1.0, "delta": DELTA,
        "horizon": 50, "problem": MEANS, "quantity": "released", "metric": None,
    }  # fmt: skip
    for key, value in general.items():
        if getattr(options, key) is None:
            setattr(options, key, example.get(key, value))
    totals = example.get("set_per_agent", {})
    changes = {key: value * max(options.agents, 1) for key, value in totals.items()}
    changes |= example.get("set", {})
    assignments = [f"{path}={json.dumps(value)}" for path, value in changes.items()]
    options.set = [*assignments, *options.set]


def example_of(name: str) -> dict[str, Any]:
    """Return the example of an algorithm, with the keys of ``examples.yaml``."""
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
            values = stated.get("parameters", {}).items()
            changes = {f"algorithm.{key}": value for key, value in values}
            return {**example, **sizes, "set": {**example.get("set", {}), **changes}}
    return {}


def plan(options: Namespace) -> tuple[dict[str, Any], Prepared, SettingParts]:
    """Return the cell that the options describe, its prepared data, and its setting."""
    _fill_from_example(options)
    if options.runs is None:
        # With more agents, a run takes longer and a mean over agents varies less.
        options.runs = max(2, RUNS * FEW_AGENTS // max(FEW_AGENTS, options.agents))
    cell = _cell(options)
    prepared = _prepared(cell, options)
    with readable_errors(options):
        _set_default_steps(cell, prepared)
    return cell, prepared, _first_setting(cell, prepared)


def _first_setting(cell: Mapping[str, Any], prepared: Prepared) -> SettingParts:
    """Return the setting of the first run of a cell, which has one setting."""
    (spec,) = cell["settings"]
    environment = environment_of(spec, prepared)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    setting = setting_of(cell["algorithm"], spec)
    problem, network = environment.problem(streams), environment.network(streams)
    return setting.algorithm, problem, network, setting.budget, setting.horizon


def _cell(options: Namespace) -> dict[str, Any]:
    """Return the validated cell of one setting, with the keys of the workflow's cells."""
    changes: dict[str, dict] = {"algorithm": {}, "problem": {}, "network": {}}
    for text in options.set:
        path, equals, value = text.partition("=")
        component, _, key = path.partition(".")
        expected = "PART.KEY=VALUE with PART algorithm, problem or network"
        require(bool(equals and key) and component in changes, "--set", text, expected)
        require(path != "network.agents", "--set", text, f"--agents {value}")
        changes[component][key] = _json_or_text(value)
    algorithms.load(options.algorithm)
    module = problems.load(options.problem)
    metrics = module.METRICS
    metric = options.metric or next(iter(metrics))
    metric_names = (*metrics, "value")
    arguments.choice("--metric", metric, metric_names)
    quantities, quantity = algorithms.load(options.algorithm).quantities, options.quantity
    arguments.choice("--quantity", quantity, quantities)
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
        "runs_per_batch": max(1, BLOCK * FEW_AGENTS // max(FEW_AGENTS, options.agents)),
        "measures": [[quantity, metric]],
        "groups": {},
        "settings": [setting],
    }
    require_settings(cell)
    return {**cell, "iterations": list(range(1, options.horizon + 1))}


def _prepared(cell: Mapping[str, Any], options: Namespace) -> Prepared:
    """Return the prepared data of a cell: synthetic records, a data set, or none."""
    (setting,) = cell["settings"]
    name = setting["problem"].get("prepared")
    if name == synthetic.NAME:
        problem, agents = setting["problem"], setting["network"]["agents"]
        return {name: synthetic.rows_of_setting(problem["name"], problem, agents)}
    return {} if name is None else {name: prepared_data(name, options)}


def prepared_data(name: str, options: Namespace) -> Any:
    """Return a prepared data set from the sources that the options state."""
    from ..reproduction.data import PREPARATIONS, prepare
    from ..reproduction.data.acquisition import Acquisition, acquire

    arguments.choice("problem.prepared", name, (synthetic.NAME, *PREPARATIONS))
    cache = Path(CACHE) if options.source == "surrogate" else None  # not read for surrogates
    acquisition = Acquisition(source=options.source, mirror=options.mirror, cache=cache)
    raw, provenance = acquire(PREPARATIONS[name].dataset, acquisition, seed=options.seed)
    if not options.json:
        OUT.print(f"data: {provenance.dataset} ({provenance.source})")
    return prepare(name, raw, provenance)


def _set_default_steps(cell: dict[str, Any], prepared: Prepared) -> None:
    """Replace default step sizes above 2/L by 1/L."""
    algorithm, problem, *_ = _first_setting(cell, prepared)
    (setting,) = cell["settings"]
    for name, (_, largest) in unstable_steps(algorithm, problem).items():
        if name not in setting["algorithm"]:
            setting["algorithm"] = {**setting["algorithm"], name: largest / 2.0}


@contextmanager
def readable_errors(options: Namespace) -> Generator[None]:
    """Convert errors of an algorithm that cannot run on a problem to a message of one line.

    The message names the last executed line of the algorithm's file, if there is one.
    """
    try:
        yield
    except InvalidInput:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        source = inspect.getsourcefile(import_module(algorithms.module_of(options.algorithm)))
        frames = traceback.extract_tb(error.__traceback__)
        frame = ([frame for frame in frames if frame.filename == source] or frames)[-1]
        location = f"{Path(frame.filename).name}, line {frame.lineno}"
        reason = shortened(f"{type(error).__name__} in {location}: {error}", 200)
        expected = f"a problem, network and budget on which {options.algorithm} can run"
        raise InvalidInput("--problem", options.problem, f"{expected} ({reason})") from error


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def setting_lines(setting: SettingParts) -> list[str]:
    """Return lines that describe a setting."""
    algorithm, _, _, budget, horizon = setting
    contents = setting_contents(setting)
    graph = contents["network"]
    return [
        f"algorithm {contents['algorithm']}: {_assignments(parameters(algorithm))}",
        f"problem {contents['problem']}: {_assignments(contents['problem_parameters'])}",
        f"network: {graph['agents']} agents, {graph['edges']} edges",
        f"budget: epsilon={budget.epsilon:g}, delta={budget.delta:g}; horizon={horizon}",
    ]


def setting_contents(setting: SettingParts) -> dict[str, Any]:
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


def _assignments(values: Mapping[str, object]) -> str:
    """Return values as ``name=value`` pairs, without values that are None; noise is rounded up."""
    stated = {
        name: rounded_up(value) if name == "noise" else f"{value:.4g}"
        for name, value in values.items()
        if isinstance(value, float)
    }
    texts = {name: stated.get(name, value) for name, value in values.items() if value is not None}
    return ", ".join(f"{name}={text}" for name, text in texts.items())
