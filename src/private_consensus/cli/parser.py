"""Options of all commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from .. import __version__

CACHE = ".cache/private-consensus"
RUNS = 20
"""Default number of runs."""
DELTA = 1e-5
"""Default delta."""
FEW_AGENTS = 1000
"""Largest number of agents for which ``RUNS`` runs are the default and a batch has full size."""
SOURCES = ("auto", "official", "surrogate")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; ``command`` is the name of a command's function."""
    parser = argparse.ArgumentParser(
        prog="private-consensus",
        description="Run, audit and compare algorithms from the command line.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, function: str, text: str, example: str = "", **preset: object) -> Callable:
        """Add a command, and return the function that adds its options."""
        words = " ".join(filter(None, ("private-consensus", name, example)))
        command = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".",
            epilog=f"Example: {words}",
        )  # fmt: skip
        command.set_defaults(command=function, **preset)
        return command.add_argument

    add("list", "describing.list_names", "list algorithms, problems and prepared data")

    option = add(
        "run", "running.run", "run an algorithm on a problem", "gradient_descent --epsilon 3"
    )
    _add_setting(option)
    runs_help = f"number of runs (default: {RUNS}; fewer for more than {FEW_AGENTS} agents)"
    option("--runs", type=int, help=runs_help)
    option(
        "--metric",
        help="metric of the problem (default: the first), or value for a quantity without metric",
    )
    option("--quantity", help="measured quantity of the algorithm (default: released)")
    option("--output", metavar="FILE.csv", help="write the measurements of all runs to a CSV file")

    option = add(
        "audit", "running.audit",
        "execute an algorithm on neighbouring data sets to contradict its privacy claim",
        "gradient_descent",
        metric=None, quantity=None,
    )  # fmt: skip
    _add_setting(option)
    option("--pairs", type=int, help="number of pairs of data sets")

    option = add(
        "observers", "running.observers",
        "compute the privacy loss to agents, secure sums and observers of final models",
        "muffliato_gd",
        metric=None, quantity=None,
    )  # fmt: skip
    _add_setting(option)
    option("--coalition", type=int, nargs="+", metavar="AGENT", help="agents who collude, from 0")

    option = add(
        "statement",
        "statements.statement",
        "test a statement of a paper",
        "gradient_descent.theorem_1",
    )
    option(
        "computation",
        nargs="?",
        help="module.function, e.g. gradient_descent.theorem_1 (default: list all)",
    )

    option = add(
        "data",
        "describing.data",
        "get all data sets; list source, licence, checksum",
        "--source surrogate",
    )
    _add_data_options(option)
    option("--cache", default=CACHE, help="folder of earlier downloads")

    option = add(
        "compare",
        "results.compare",
        "compare a run with the reference results",
        "results/paper --exact",
    )
    option("run", nargs="?", default="results/paper", help="folder of the run")
    option("--reference", default="results/reference", help="folder of the reference results")
    option("--exact", action="store_true", help="allow a relative difference of 1e-6 only")

    option = add(
        "schema", "studies.schema", "print a JSON schema of the configuration, for editors", "paper"
    )
    option("kind", choices=("config", "paper", "styles"), help="kind of configuration files")

    option = add("init", "studies.init", "write a study of your own to a new folder", "mystudy")
    option("study", metavar="STUDY", help="new folder; the study has the name of the folder")

    option = add("check", "studies.check", "validate a configuration without running it", "mystudy")
    option(
        "path", metavar="PATH", nargs="?", default=".",
        help="folder of a study, or a file of config/papers (default: this folder)",
    )  # fmt: skip
    option("--scale", help="scale of the settings (default: that of the configuration)")

    option = add(
        "reproduce",
        "studies.reproduce",
        "compute figures, claims and audits of a study",
        "mystudy --scale smoke",
    )
    option("study", metavar="STUDY", nargs="?", default=".", help="folder of the study")
    option("--scale", help="smoke for a small run (default: that of the configuration)")
    option("--cores", type=int, default=os.cpu_count() or 1, help="parallel jobs")

    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


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
    option("--mirror", help="folder with the publishers' files")
    option(
        "--source", choices=SOURCES, default="auto",
        help="auto: a surrogate if no source is reachable; official: no surrogate; "
        "surrogate: sampled records, without a download",
    )  # fmt: skip
