"""Test how many files and functions of the package four common tasks execute.

A maintainer has to read the code that a task executes, so the limits may only fall.
"""

import gc
import inspect
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import private_consensus as pc
from private_consensus.reproduction import figures
from private_consensus.reproduction.configuration import plan as planning
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.results.cells import run_cell

ROOT = Path(__file__).parents[2]
PACKAGE = str(Path(pc.__file__).parent)


def entered(task) -> dict[str, set[str]]:
    """Run ``task`` and return the entered functions by file of the package.

    Bodies of modules and classes, which an import executes, do not count.
    """
    functions: dict[str, set[str]] = {}

    def profile(frame, event, argument):
        code = frame.f_code
        of_package = code.co_filename.startswith(PACKAGE)
        if event == "call" and of_package and code.co_flags & inspect.CO_OPTIMIZED:
            functions.setdefault(code.co_filename[len(PACKAGE) + 1 :], set()).add(code.co_qualname)

    # The garbage collector would resume abandoned generators of other tests, in order to end them.
    gc.collect()
    gc.disable()
    sys.setprofile(profile)
    try:
        task()
    finally:
        sys.setprofile(None)
        gc.enable()
    return functions


def configuration(*papers):
    return read_yaml(ROOT / "config" / "config.yaml") | {"papers": list(papers)}


def plan(paper):
    loaded = planning.load(configuration(paper), ROOT / "config")
    loaded.cell(*min(loaded.cells()))


def epsilon(mechanism):
    pc.account([pc.Release(mechanism, 1.0, 2.0, count=10)], 1e-5)


def iterate(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(1, 4, 20, 3)) / 10
    labels = rng.choice([-1.0, 1.0], (1, 4, 20))
    problem = pc.problems.class_of("logistic_regression")(
        features, labels, features[:, 0], labels[:, 0], weight=1.0, ridge=0.1
    )
    streams = pc.Streams(seed, (0,))
    network = pc.networks.build(streams, "ring", 4)
    algorithm = pc.algorithms.load("dvp")().calibrate(pc.Budget(1.0, 1e-5), problem, network, 2)
    return lambda: algorithm.run(problem, network, streams, [2], lambda t, active, observed: None)


def figure(name):
    loaded = planning.load(configuration("showkatbakhsh"), ROOT / "config")
    numbers = pl.read_parquet(ROOT / "results" / "reference" / "data" / f"{name}.parquet")
    styles = {key: style.model_dump() for key, style in loaded.styles.items()}
    drawing = loaded.drawing(name)
    return lambda: figures.draw(name, "showkatbakhsh", numbers, drawing, styles)


TASKS = {
    "configuration to plan": (lambda: plan("wang"), lambda: plan("showkatbakhsh"), 15, 131),
    "an epsilon": (lambda: epsilon("laplace"), lambda: epsilon("gaussian"), 6, 58),
    "two iterates of DVP": (iterate(0), iterate(1), 14, 81),
    "a figure": (figure("showkatbakhsh_fig2"), figure("showkatbakhsh_fig3"), 8, 77),
}
"""For each name: import task, measured task, and limits of files and functions."""


@pytest.mark.parametrize("name", TASKS)
def test_a_task_executes_at_most_the_allowed_files_and_functions(name):
    first, task, most_files, most_functions = TASKS[name]
    first()
    functions_by_file = entered(task)
    assert len(functions_by_file) <= most_files
    assert sum(map(len, functions_by_file.values())) <= most_functions


def paths(task, *targets) -> list[set[str]]:
    """Run ``task``; for each target function, return the files on the call stack of its first call.

    Together they are what a reader has to follow, without the helpers that return on the way.
    """
    files: dict[str, set[str]] = {}

    def profile(frame, event, argument):
        name = frame.f_code.co_qualname
        if event == "call" and name in targets and name not in files:
            files[name] = set()
            while frame:
                files[name].add(frame.f_code.co_filename)
                frame = frame.f_back

    sys.setprofile(profile)
    try:
        task()
    finally:
        sys.setprofile(None)
    return [{file for file in files[name] if file.startswith(PACKAGE)} for name in targets]


def test_the_path_of_a_setting_from_its_yaml_to_its_noise_and_its_epsilon_is_short():
    def task():
        settings = configuration("showkatbakhsh") | {"scale": "smoke"}
        plan = planning.load(settings, ROOT / "config")
        run_cell(plan.cell("showkatbakhsh_fig2", "gradient_descent"), {})

    targets = ("Figure.complete", "expand", "Additive.output", "gaussian_epsilon")
    *configured, noise, epsilon = paths(task, *targets)
    assert len(set.union(*configured, noise)) <= 8
    assert len(set.union(*configured, epsilon)) <= 6
