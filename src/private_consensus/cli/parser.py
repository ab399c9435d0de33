"""Options of all commands."""

import argparse
import os
from collections.abc import Callable

from .. import __version__


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; ``command`` is the name of a command's function."""
    parser = argparse.ArgumentParser(
        prog="private-consensus",
        description="Run, audit and compare algorithms from the command line.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, function: str, text: str, example: str = "") -> Callable:
        """Add a command, and return the function that adds its options."""
        command = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".",
            epilog=f"Example: private-consensus {name} {example}",
        )  # fmt: skip
        command.set_defaults(command=function)
        return command.add_argument

    add("list", "describing.list_names", "list algorithms, problems and prepared data")

    text = "run an algorithm on a problem"
    option = add("run", "running.run", text, "gradient_descent --epsilon 3")
    _add_setting(option)
    option("--runs", type=int, default=20, help="number of runs (default: 20)")
    option("--metric", help="metric of the problem (default: the first)")
    option("--output", metavar="FILE.csv", help="write the measurements of all runs to a CSV file")

    text = "execute an algorithm on neighbouring data sets to contradict its privacy claim"
    option = add("audit", "running.audit", text, "gradient_descent")
    _add_setting(option)
    option("--pairs", type=int, help="number of pairs of data sets")

    text = "compute the privacy loss to agents, secure sums and observers of final models"
    option = add("observers", "running.observers", text, "muffliato_gd")
    _add_setting(option)
    option("--coalition", type=int, nargs="+", metavar="AGENT", help="agents who collude, from 0")

    text = "test a statement of a paper"
    option = add("statement", "describing.statement", text, "gradient_descent.theorem_1")
    option(
        "computation", nargs="?",
        help="module.function, e.g. gradient_descent.theorem_1 (default: list all)",
    )  # fmt: skip

    text = "get all data sets; list source, licence, checksum"
    option = add("data", "describing.data", text, "--source surrogate")
    option(
        "--source", choices=("auto", "official", "surrogate"), default="auto",
        help="auto: a surrogate if no source is reachable; official: no surrogate; "
        "surrogate: sampled records, without a download",
    )  # fmt: skip

    text = "compare a run with the reference results"
    option = add("compare", "describing.compare", text, "results/paper --exact")
    option("run", nargs="?", default="results/paper", help="folder of the run")
    option("--reference", default="results/reference", help="folder of the reference results")
    option("--exact", action="store_true", help="allow a relative difference of 1e-6 only")

    text = "print a JSON schema of the configuration, for editors"
    option = add("schema", "studies.schema", text, "paper")
    option("kind", choices=("config", "paper", "styles"), help="kind of configuration files")

    option = add("init", "studies.init", "write a study of your own to a new folder", "mystudy")
    option("study", metavar="STUDY", help="new folder; the study has the name of the folder")

    option = add("check", "studies.check", "validate a configuration without running it", "mystudy")
    option(
        "path", metavar="PATH", nargs="?", default=".",
        help="folder of a study, or a file of config/papers (default: this folder)",
    )  # fmt: skip
    option("--scale", help="scale of the settings (default: that of the configuration)")

    text = "compute figures, claims and audits of a study; exit code 1 if an audit has a finding"
    option = add("reproduce", "studies.reproduce", text, "mystudy --scale smoke")
    option("study", metavar="STUDY", nargs="?", default=".", help="folder of the study")
    option("--scale", help="smoke for a small run (default: that of the configuration)")
    option("--cores", type=int, default=os.cpu_count() or 1, help="parallel jobs")
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
