"""The command line: what there is, one algorithm on one problem, epsilon of a noise."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from . import __version__, privacy
from .common.errors import Diverged, InvalidInput, Refused, one_line, require, shortened
from .common.extras import how_to_install
from .common.secrets import redacted
from .common.spelling import meant
from .common.terminal import first_sentence, rendered
from .core import algorithms, problems, synthetic
from .core.algorithms.base import parameters, unstable_steps
from .core.networks import default_parameters
from .core.simulation import BLOCK
from .reproduction.experiments.cells import environment_of, run_cell, setting_of
from .reproduction.experiments.checks import MOST, require_settings, whole, wrong_horizon
from .reproduction.experiments.quantities import quantities_of
from .reproduction.studies.commands import add_commands

OUT = Console()
MAX_LINES = 20
"""Errors of one configuration that are printed; the others are counted."""
MAX_MESSAGE = 10_000
"""Characters of an error message that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``private-consensus``; 0 if all went well, 2 for input that cannot be used.

    ``compare`` gives 1 if numbers moved, ``audit`` if anything speaks against a claim.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.command(options) or 0
    except (InvalidInput, Diverged) as error:
        lines = str(error).splitlines()
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]
        _print_error("; ".join(filter(None, [*lines, meant(error)])))
        return 2
    except ModuleNotFoundError as error:
        if (line := how_to_install(error)) is None:
            raise
        _print_error(line)
        return 2
    except MemoryError as error:
        _print_error(f"not enough memory: {error}")
        return 2
    except OSError as error:
        _print_error(str(error))
        return 2


def _print_error(message: str) -> None:
    """Print one line without secrets and control characters to standard error."""
    line = shortened(redacted(one_line(message)), MAX_MESSAGE)
    print(f"private-consensus: {line}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="private-consensus", description=__doc__)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="algorithms, problems and data sets")
    listing.set_defaults(command=_list)

    describing = commands.add_parser(
        "describe", help="one algorithm or problem: formulas, parameters"
    )
    describing.add_argument("name")
    describing.set_defaults(command=_describe)

    running = commands.add_parser("run", help="one algorithm on one problem")
    _add_setting(running)
    running.add_argument(
        "--runs", type=int, help=f"default {RUNS}; fewer for more than {FEW_AGENTS} agents"
    )
    running.add_argument("--metric", help="one of the problem's, or value; the first by default")
    running.add_argument("--quantity", help="what is measured (default released)")
    running.set_defaults(command=_run)

    auditing = commands.add_parser(
        "audit", help="execute an algorithm on neighbouring data and test what it claims"
    )
    _add_setting(auditing)
    auditing.add_argument("--runs", type=int, help="on each of two data sets, at most")
    auditing.add_argument("--confidence", type=float, help="of the whole result")
    auditing.set_defaults(command=_audit, metric=None, quantity=None)

    watching = commands.add_parser(
        "observers", help="who learns what about whom: epsilon of views that see a part"
    )
    _add_setting(watching)
    watching.add_argument("--observer", type=int, help="one agent; every other one by distance")
    watching.set_defaults(command=_observers, runs=1, metric=None, quantity=None)

    pricing = commands.add_parser("privacy", help="epsilon of a noise, or noise for an epsilon")
    pricing.add_argument("--mechanism", choices=("gaussian", "laplace"), default="gaussian")
    pricing.add_argument("--sensitivity", type=float, default=1.0)
    pricing.add_argument("--count", type=int, default=1, help="how many releases are composed")
    pricing.add_argument("--delta", type=float, default=_defaults()["delta"])
    known = pricing.add_mutually_exclusive_group(required=True)
    known.add_argument("--scale", type=float, help="standard deviation, or Laplace scale")
    known.add_argument("--epsilon", type=float)
    pricing.set_defaults(command=_privacy)

    showing = commands.add_parser(
        "counterexample", help="what a computation finds about a statement of a paper"
    )
    showing.add_argument("id", nargs="?", help="number of the erratum, e.g. E0.1; all are listed")
    showing.set_defaults(command=_counterexample)

    stating = commands.add_parser(
        "theorem", help="what a computation finds about a numbered statement of a paper"
    )
    stating.add_argument("computation", help="module.function, e.g. gradient_descent.theorem_1")
    stating.set_defaults(command=_theorem)

    fetching = commands.add_parser("data", help="data sets: where they come from, their cards")
    fetching.add_argument("--mirror", help="folder or URL with the publishers' files")
    fetching.add_argument("--cache", default=".cache/private-consensus")
    fetching.add_argument("--source", choices=("auto", "official", "surrogate"), default="auto")
    fetching.set_defaults(command=_data)

    entering = commands.add_parser(
        "new-algorithm", help="write an algorithm's file, its test and its entry"
    )
    entering.add_argument("name")
    entering.add_argument("--package", metavar="FOLDER", help="as a package of one's own, there")
    entering.set_defaults(command=_new_algorithm)

    ranking = commands.add_parser(
        "rank", help="an algorithm among all others, run here or handed in as results"
    )
    ranking.add_argument("given", nargs="+", metavar="NAME|FILE.parquet")
    ranking.add_argument("--scale", default="smoke", help="of the design (default smoke)")
    ranking.add_argument("--design", default="config/comparison.yaml")
    ranking.add_argument("--against", metavar="FILE", help="results of the others, not run again")
    ranking.add_argument("--out", metavar="FILE.parquet", help="results of NAME, to hand in")
    ranking.add_argument("--mirror", help="folder or URL with the publishers' files")
    ranking.set_defaults(command=_rank, seed=0)

    comparing = commands.add_parser("compare", help="which numbers of a run moved")
    comparing.add_argument("run", nargs="?", default="results/paper")
    comparing.add_argument("--reference", default="results/reference")
    comparing.add_argument(
        "--exact",
        action="store_true",
        help="compare every published number to a relative tolerance of 1e-6",
    )
    comparing.set_defaults(command=_compare)

    describing_files = commands.add_parser(
        "schema", help="write the JSON schemas by which editors check files of a configuration"
    )
    describing_files.add_argument("folder", nargs="?", default="config/schemas")
    describing_files.set_defaults(command=_schema)

    profiling = commands.add_parser("profile", help="the heaviest jobs of a run, as Markdown")
    profiling.add_argument("run", nargs="?", default="results/paper")
    profiling.add_argument("--before", help="an older run to compare with")
    profiling.add_argument("--count", type=int, default=10)
    profiling.set_defaults(command=_profile)

    add_commands(commands)
    return parser


def _defaults() -> dict[str, Any]:
    """Return the default of each level."""
    from .common import yamls

    return yamls.read(Path(__file__).parent / "defaults.yaml")


MEANS = "mean_estimation"
SETTING = ("network", "agents", "epsilon", "delta", "horizon")


def _setting() -> dict[str, Any]:
    """Return the default setting of a run."""
    return dict(zip(SETTING, ("ring", 10, 1.0, _defaults()["delta"], 50), strict=True))


SHOWN = ("problem", "quantity", "metric")
RUNS = 20
FEW_AGENTS = 1000
"""Largest number of agents for which ``RUNS`` runs are the default and a block has full size."""


def _default_runs(agents: int) -> int:
    """Return the default number of runs, at least 2: more agents need more time per run, and a mean
    over more agents varies less.
    """
    return max(2, RUNS * FEW_AGENTS // max(FEW_AGENTS, agents))


def _block(agents: int) -> int:
    """Return the number of runs that are computed together, so that memory is bounded."""
    return max(1, BLOCK * FEW_AGENTS // max(FEW_AGENTS, agents))


def _as_in_the_example(options) -> None:
    """Fill missing options from the example of the algorithm if it has the same problem, else
    from the general defaults.
    """
    from .common import yamls

    examples = yamls.read(Path(__file__).parent / "examples.yaml")
    example = next((one for one in examples if options.algorithm in one["algorithms"]), {})
    if options.problem not in (None, example.get("problem", MEANS)):
        example = {}
    said = {**_setting(), "problem": MEANS, "quantity": "released", "metric": None, **example}
    for key in (*SETTING, *SHOWN):
        if getattr(options, key) is None:
            setattr(options, key, said[key])
    totals = said.get("set_per_agent", {})
    parameters = {key: value * max(options.agents, 1) for key, value in totals.items()}
    parameters |= said.get("set", {})
    given = [f"{path}={json.dumps(value)}" for path, value in parameters.items()]
    options.set = [*given, *options.set]


def _add_setting(parser) -> None:
    """Add the arguments of one setting; their defaults are those of the algorithm's example."""
    parser.add_argument("algorithm")
    parser.add_argument(
        "--problem", help="problem to solve (default: the example of the algorithm)"
    )
    parser.add_argument("--network")
    parser.add_argument("--agents", type=int)
    parser.add_argument("--epsilon", type=float, help="inf for no privacy")
    parser.add_argument("--delta", type=float)
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PART.KEY=VALUE",
        help="algorithm.KEY, problem.KEY or network.KEY; may be repeated",
    )
    parser.add_argument("--mirror", help="folder or URL with the publishers' files")


def _schema(options) -> None:
    from .common.provenance import write_text
    from .reproduction.experiments.shorthand import schemas

    require("\0" not in options.folder, "folder", options.folder, "a folder")
    folder, written = Path(options.folder), schemas()
    if folder.is_dir():
        files = {path.name for path in folder.iterdir()}
        expected = "a new folder, an empty one, or one with nothing but schemas"
        foreign = files - {f"{name}.json" for name in written}
        require(not foreign, "folder", options.folder, expected)
    for name, schema in written.items():
        write_text(folder / f"{name}.json", json.dumps(schema, indent=1) + "\n")


def _list(_) -> int:
    """Return 1 if an entry point has the name of another algorithm."""
    from .reproduction.datasets import PREPARATIONS

    for title, rows in {
        "algorithm": [
            (name, _about(sys.modules[algorithms.load(name).__module__]))
            for name in algorithms.names()
        ],
        "problem": [(name, _about(problems.load(name))) for name in problems.names()],
        "prepared data": [(name, p.because) for name, p in PREPARATIONS.items()],
    }.items():
        _print_table([title, ""], rows)
    unusable = algorithms.unusable()
    if unusable:
        _print_table(["entry point that is not used", "reason"], list(unusable.items()))
    collisions = algorithms.collisions()
    for name, reason in collisions.items():
        _print_error(f"entry point {name}: {reason}")
    return 1 if collisions else 0


def _describe(options) -> None:
    name = options.name
    if name in algorithms.names():
        built, module = algorithms.load(name), sys.modules[algorithms.load(name).__module__]
    elif name in problems.names():
        module = problems.load(name)
        built = module.build
    else:
        known = ", ".join(algorithms.names() + problems.names())
        raise InvalidInput("NAME", name, f"one of {known}")
    for documented in (module, built):
        text = rendered(inspect.getdoc(documented) or "")
        OUT.print(text + "\n", highlight=False, markup=False, soft_wrap=True)
    _print_oracles(name)
    if inspect.isclass(built):
        fields = dataclasses.fields(built)
        OUT.print(f"\nHides: {_with_defaults(built).relation}", highlight=False)
        rows = [(f.name, _default(f)) for f in fields]
        _print_table(["parameter", "default"], rows)


def _with_defaults(built: type) -> Any:
    """An algorithm without parameters; its class, where it needs some: nothing that is said of such
    an algorithm depends on them."""
    needed = any(field.default is dataclasses.MISSING for field in dataclasses.fields(built))
    return built if needed else built()


def _default(field: dataclasses.Field) -> str:
    return "none: to be given" if field.default is dataclasses.MISSING else repr(field.default)


def _print_oracles(name: str) -> None:
    """Print the uses of private data that no mechanism covers."""
    if name in algorithms.names():
        algorithm = _with_defaults(algorithms.load(name))
        uses = [f"where the problem computes it from data: {use}" for use in algorithm.uses]
        lines = [*algorithm.oracles, *uses]
    else:
        problem = problems.class_of(name)
        uses = [f"for algorithms that use {key}: {text}" for key, text in problem.from_data.items()]
        lines = [*problem.oracles, *uses]
    for line in lines:
        OUT.print(f"Not charged: {line}", highlight=False, markup=False)


def _run(options) -> None:
    algorithms.load(options.algorithm)
    _as_in_the_example(options)
    if options.runs is None:
        options.runs = _default_runs(options.agents)
    cell = _cell(options)
    with Progress(console=OUT, transient=True) as bar:
        task = bar.add_task(f"{options.algorithm}, {options.runs} runs", total=options.runs)
        prepared = _prepared(cell, options)
        with _combined(options):
            runs, private = run_cell(
                cell, prepared, lambda done, of: bar.update(task, completed=done, total=of)
            )
    _print_setting(_first_setting(cell, prepared))
    error = (pl.col("value").std(ddof=1).fill_null(0.0) / pl.len().sqrt()).alias("error")
    shown = runs.group_by("t").agg(pl.col("value").mean(), error).sort("t")
    metric = cell["measures"][0][1]
    picked = shown[_log_spaced(shown.height, 12)]
    _print_table(
        ["t", metric, "standard error"],
        [(str(t), f"{m:.4g}", f"{e:.2g}") for t, m, e in picked.iter_rows()],
        caption=f"mean of {runs['run'].n_unique()} runs",
    )
    _print_plot(shown["t"].to_numpy(), shown["value"].to_numpy(), metric)
    row = private.row(0, named=True)
    _print_table(
        ["privacy", "epsilon"],
        [
            ("claimed", f"{row['epsilon_claimed']:.4g}"),
            ("by the paper's formula", f"{row['epsilon_formula']:.4g}"),
            (f"by the accountant ({row['accountant']})", f"{row['epsilon_accountant']:.4g}"),
            (f"by a known attack, at least ({row['lower_by']})", f"{row['epsilon_lower']:.4g}"),
        ],
        caption=f"delta = {row['delta']:g}; {row['relation']}; {row['verdict']}",
    )


def _example(options) -> tuple[tuple, float]:
    """The small example of an algorithm, of which nothing is changed, and its delta."""
    from .audits.examples import examples

    for key in (*SETTING, "set"):
        value = getattr(options, key)
        require(not value, f"--{key}", value, "--problem beside it; without one an example is run")
    (example,) = examples(options.algorithm)
    return example.world, example.budget.delta


def _audit(options) -> int:
    """0 if nothing speaks against the claim, 1 if something does."""
    from . import audit

    defaults = _defaults()
    runs, confidence = (
        defaults["audit"][key] if value is None else value
        for key, value in (("runs", options.runs), ("confidence", options.confidence))
    )
    if options.problem is None:
        world, delta = _example(options)
    else:
        _as_in_the_example(options)
        options.runs = runs
        cell = _cell(options)
        world, delta = _first_setting(cell, _prepared(cell, options)), options.delta
    for line in (*whole("--seed", options.seed, 0), *whole("--runs", runs, 1, MOST["runs"])):
        raise Refused([line])
    with Progress(console=OUT, transient=True) as bar:
        task = bar.add_task(
            f"audit of {options.algorithm}, {runs} runs of two data sets", total=runs
        )
        with _combined(options):
            found = audit(
                *world, runs=runs, confidence=confidence, delta=delta, seed=options.seed,
                progress=lambda done, of: bar.update(task, completed=done, total=of),
            )  # fmt: skip
    _print_setting(world)
    _print_table(["audit", ""], found.lines())
    return 1 if found.flagged else 0


def _observers(options) -> None:
    from .audits.views import by_distance, epsilon_by_observer, observation

    algorithms.load(options.algorithm)
    _as_in_the_example(options)
    cell = _cell(options)
    world = _first_setting(cell, _prepared(cell, options))
    algorithm, problem, network, budget, horizon = world
    network = network.of_run(0)
    somebody = "2 or more: somebody has to watch"
    require(network.n_agents >= 2, "network.agents", network.n_agents, somebody)
    hidden = "a finite budget: without noise nothing is hidden"
    require(budget.private, "budget.epsilon", budget.epsilon, hidden)
    algorithm = algorithm.calibrate(budget, problem, network, horizon)
    with _combined(options):
        seen = observation(algorithm, problem, network, horizon)
        if options.observer is None:
            whom, rows = ("observer", "distance", "pair"), epsilon_by_observer(seen, budget.delta)
        else:
            whom, rows = ("agent", "distance"), by_distance(seen, budget.delta, options.observer)
    _print_setting(world)
    keys = (*whom, "formula", "guarantee", "rule")
    shown = [[_in_short(row[key]) for key in keys] for row in rows]
    caption = f"epsilon at delta = {budget.delta:g}; {algorithm.relation}"
    if seen.reason:
        caption += f"; no formula: {seen.reason}"
    _print_table([*whom, "inputs as given", "guaranteed", "rule"], shown, caption=caption)


def _print_setting(setting: tuple[Any, Any, Any, Any, int]) -> None:
    """Print algorithm, problem, network, budget and horizon, and warn of steps above 2/L.

    Parameters
    ----------
    setting : tuple
        Algorithm, problem, network, budget and horizon.
    """
    algorithm, problem, network, budget, horizon = setting
    numbers = {
        name: value
        for name, value in vars(problem).items()
        if isinstance(value, int | float) and not name.startswith("_")
    }
    graph = network.of_run(0)
    edges = int(np.sum(graph.degrees)) // 2
    lines = [
        f"algorithm {type(algorithm).__name__}: {_assignments(parameters(algorithm))}",
        f"problem {type(problem).__name__}: {_assignments({'dim': problem.dim, **numbers})}",
        f"network: {graph.n_agents} agents, {edges} edges",
        f"budget: epsilon={budget.epsilon:g}, delta={budget.delta:g}; horizon={horizon}",
    ]
    for line in lines:
        OUT.print(line, highlight=False, markup=False, soft_wrap=True)
    for name, (value, largest) in unstable_steps(algorithm, problem).items():
        text = (
            f"warning: {name}={value:.4g} is above 2/L = {largest:.4g}, the largest stable step of "
            f"gradient descent; set a smaller one by --set algorithm.{name}=VALUE"
        )
        print(text, file=sys.stderr)


def _assignments(values: Mapping[str, Any]) -> str:
    """Return values as ``name=value`` pairs, without those that are not set."""
    shown = {name: value for name, value in values.items() if value is not None}
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in shown.items()
    )


def _in_short(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def _combined(options) -> Iterator[None]:
    """Around what runs an algorithm on a problem: not every one fits every other."""
    try:
        yield
    except (InvalidInput, Diverged):
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        *_, place = traceback.extract_tb(error.__traceback__)
        because = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        expected = f"a problem, network and budget that {options.algorithm} can be run with"
        raise InvalidInput("--problem", options.problem, f"{expected} ({because})") from error


def _first_setting(cell: Mapping[str, Any], prepared: Mapping[str, Any]):
    """Return algorithm, problem, network, budget and horizon of the first run of a cell.

    Parameters
    ----------
    cell : mapping
        One setting.
    prepared : mapping
        Data sets that the setting needs.
    """
    from .core.randomness import Streams

    (spec,) = cell["settings"]
    environment = environment_of(spec, prepared)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    setting = setting_of(cell["algorithm"], spec)
    problem, network = environment.problem(streams), environment.network(streams)
    return setting.algorithm, problem, network, setting.budget, setting.horizon


def _cell(options) -> dict[str, Any]:
    parts: dict[str, dict] = {"algorithm": {}, "problem": {}, "network": {}}
    for text in options.set:
        path, equals, value = text.partition("=")
        part, _, key = path.partition(".")
        require(
            bool(equals and key) and part in parts,
            "--set",
            text,
            "PART.KEY=VALUE with PART algorithm, problem or network",
        )
        parts[part][key] = _value(value)
    algorithms.load(options.algorithm)
    module = problems.load(options.problem)
    metrics = module.METRICS
    metric = options.metric or next(iter(metrics))
    known = (*metrics, "value")
    require(metric in known, "--metric", metric, f"one of {', '.join(known)}")
    if options.quantity is not None:
        shown, asked = quantities_of(options.algorithm), options.quantity
        require(asked in shown, "--quantity", asked, f"one of {', '.join(shown)}")
    for line in wrong_horizon(options.horizon):
        raise Refused([line])
    setting = {
        "columns": {},
        "variant": "run",
        "reading": "resolved",
        "horizon": options.horizon,
        "budget": {"epsilon": options.epsilon, "delta": options.delta},
        "problem": {"name": options.problem, **module.EXAMPLE, **parts["problem"]},
        "network": {
            "name": options.network,
            "agents": options.agents,
            **default_parameters(options.network, min(options.agents, MOST["agents"])),
            **parts["network"],
        },
        "algorithm": parts["algorithm"],
    }
    cell = {
        "experiment": "command line",
        "algorithm": options.algorithm,
        "seed": options.seed,
        "runs": options.runs,
        "block": _block(options.agents),
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
    """Prepared data sets by name, from where a user said, or the publishers."""
    if not names:
        return {}
    from .reproduction.datasets import PREPARATIONS, Acquisition, acquire, prepare

    found = {}
    for name in names:
        known = f"{synthetic.NAME} or one of {', '.join(PREPARATIONS)}"
        require(name in PREPARATIONS, "problem.prepared", name, known)
        raw, provenance = acquire(
            PREPARATIONS[name].dataset, Acquisition(mirror=options.mirror), seed=options.seed
        )
        OUT.print(f"data: {provenance.dataset} ({provenance.source})")
        found[name] = prepare(name, raw, provenance)
    return found


MOST_RELEASES = {"gaussian": 10_000_000, "laplace": 100_000}
"""Laplace losses are convolved on a grid, which grows with their number."""


def _privacy(options) -> None:
    from .privacy import Budget, Release

    for line in whole("--count", options.count, 1, MOST_RELEASES[options.mechanism]):
        raise Refused([line])

    def release(scale: float) -> list[Release]:
        return [
            Release(
                options.mechanism, sensitivity=options.sensitivity, scale=scale, count=options.count
            )
        ]

    if options.scale is not None:
        require(options.scale > 0, "--scale", options.scale, "a number > 0")
        guarantee = privacy.account(release(options.scale), options.delta)
        _print_table(
            ["quantity", "value"],
            [
                ("epsilon", f"{guarantee.epsilon:.6g}"),
                ("delta", f"{options.delta:g}"),
                ("by", guarantee.method),
                ("proven", "yes" if guarantee.proven else "no"),
            ],
        )
        return
    scale = privacy.calibrate(release, Budget(options.epsilon, options.delta))
    _print_table(
        ["quantity", "value"],
        [
            ("scale", f"{scale:.6g}"),
            ("epsilon", f"{options.epsilon:g}"),
            ("delta", f"{options.delta:g}"),
        ],
    )


def _counterexample(options) -> None:
    from .reproduction.statements.counterexamples import COMPUTATIONS, compute

    if options.id is None:
        rows = [(erratum, _about(found)) for erratum, found in COMPUTATIONS.items()]
        _print_table(["counterexample", "what is computed"], rows)
        return
    found = compute(options.id)
    for line in found.lines:
        print(line)
    print(f"{found.quantity}: {found.claimed:.4g} by the text, {found.found:.4g} found")
    print(f"{options.id}: {found.outcome}")


def _theorem(options) -> None:
    from .reproduction.statements import compute

    found = compute(options.computation)
    for line in found.lines:
        print(line)
    for part in found.parts:
        outcome = "holds" if part.holds else "does not hold"
        print(f"{part.what}: {part.stated:.4g} stated, {part.measured:.4g} measured: {outcome}")
    print(f"{options.computation}: {found.verdict}")


def _data(options) -> None:
    from .reproduction.datasets import Acquisition, summary

    asked = Acquisition(source=options.source, mirror=options.mirror, cache=Path(options.cache))
    asked.check()
    for row in summary(asked):
        _print_table([row["dataset"], row["title"]], _card(row))


def _new_algorithm(options) -> None:
    from .comparison.entering import new_algorithm

    folder = options.package or "."
    files = new_algorithm(options.name, folder, package=options.package is not None)
    for path in files:
        print(path)
    if options.package is not None:
        print(f"next: python -m pip install -e {folder}")
    print(f"next: python -m pytest {files[1]}")
    print(f"next: private-consensus rank {options.name} --scale smoke")


def _rank(options) -> None:
    from .comparison.ranking import ranked

    with Progress(console=OUT, transient=True) as bar:
        task = bar.add_task("", total=None)
        found = ranked(
            options.given, options.design, options.scale,
            against=options.against, out=options.out,
            prepared=lambda names: _prepared_data(names, options),
            progress=lambda problem: bar.update(task, description=problem),
        )  # fmt: skip
    for line in found.absent:
        OUT.print(f"not entered: {line}", highlight=False, markup=False)
    _print_table(found.heads, found.rows, caption=found.caption)


def _compare(options) -> int:
    from .reproduction.publishing import compare, compare_exactly

    if options.exact:
        exact = compare_exactly(options.run, options.reference)
        for title in ("different", "missing"):
            for line in getattr(exact, title):
                print(f"{title}: {line}")
        print(
            f"{exact.compared} values compared exactly: {len(exact.different)} columns or entries "
            f"differ, {len(exact.missing)} tables missing"
        )
        return 0 if exact.same else 1
    result = compare(options.run, options.reference)
    for title in ("machines", "moved", "missing", "verdicts"):
        for line in getattr(result, title):
            print(f"{title}: {line}")
    print(
        f"{result.compared} numbers compared: {len(result.moved)} moved beyond their error, "
        f"{len(result.missing)} missing, {len(result.verdicts)} verdicts changed"
    )
    return 0 if result.same else 1


def _profile(options) -> None:
    from .reproduction.publishing import beyond_limits, profile_table

    print(profile_table(options.run, options.before, options.count), end="")
    for sentence in beyond_limits(options.run):
        print(sentence)


def _card(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    warning = "SURROGATE, not the real data; " if row["source"] == "surrogate" else ""
    return [
        ("source", f"{row['source']}: {row['where']}, {row['version']}"),
        ("because", f"{warning}{row['because']}"),
        ("rows, columns", f"{row['rows']:,}, {row['columns']:,}"),
        ("label", f"{row['label']}: {row['label_rate']:.1%}"),
        ("licence", row["licence"]),
        ("needs", row["needs"]),
        ("SHA-256", row["checksum"]),
        ("prepared as", ", ".join(row["preparations"])),
        ("found in", f"{row['seconds']:.1f} s"),
    ]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _about(thing: Any) -> str:
    return first_sentence(inspect.getdoc(thing) or "")


def _log_spaced(count: int, at_most: int) -> list[int]:
    spaced = np.unique(np.geomspace(1, count, at_most).round().astype(int)) - 1
    return [int(i) for i in spaced]


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    columns = [Column(title, overflow="fold") for title in titles]
    table = Table(*columns, caption=caption or None, caption_justify="left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    OUT.print(table)


def _print_plot(
    x: np.ndarray, y: np.ndarray, title: str, *, width: int = 60, height: int = 12
) -> None:
    """A curve in characters, logarithmic where all values are positive."""
    log = bool((y > 0).all())
    levels = np.log10(y) if log else y
    span = np.ptp(levels) or 1.0
    column = np.clip(
        ((x - x[0]) / (np.ptp(x) or 1) * (width - 1)).round().astype(int), 0, width - 1
    )
    row = ((levels.max() - levels) / span * (height - 1)).round().astype(int)
    canvas = np.full((height, width), " ")
    canvas[row, column] = "*"
    labels = {0: y[levels.argmax()], height - 1: y[levels.argmin()]}
    for index, line in enumerate(canvas):
        label = f"{labels[index]:10.3g}" if index in labels else " " * 10
        OUT.print(f"{label} |{''.join(line)}", highlight=False, markup=False)
    OUT.print(" " * 11 + "+" + "-" * width, highlight=False)
    scale = "logarithmic" if log else "linear"
    OUT.print(f"{'':11} t = {x[0]} to {x[-1]}; {title}, {scale}", highlight=False)
