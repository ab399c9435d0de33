"""Run ``private-consensus check``: validate a configuration without computing anything."""

import sys
from pathlib import Path

from private_consensus.common.errors import arguments, require

from ..configuration.plan import load
from ..configuration.schema import read_yaml
from .places import HOME
from .reproduction import package_folders

EXPECTED = "a folder with config/config.yaml, or a file of config/papers"


def check(path: str | Path, scale: str | None = None) -> dict[str, int]:
    """Validate the configuration of a study, of the repository, or of one paper.

    ``path`` is a folder that contains ``config/config.yaml``, or a file
    ``config/papers/NAME.yaml``. The scale is that of the configuration by default. Return the
    numbers of papers, experiments, settings, figures, tables, claims and audited cells. A wrong
    configuration raises ``InvalidInput`` with one line per error.
    """
    target = arguments.path("PATH", path, EXPECTED).absolute()
    is_paper = target.is_file() and target.parent.name == "papers"
    folder = target.parents[2] if is_paper else target
    require((folder / "config" / "config.yaml").is_file(), "PATH", str(path), EXPECTED)
    sys.path[:0] = package_folders(folder)
    config = read_yaml(folder / "config" / "config.yaml")
    if is_paper:
        config["papers"] = [target.stem]
    if scale is not None:
        config["scale"] = scale
    folders = list(dict.fromkeys([folder / "config", HOME.absolute() / "config"]))
    plan = load(config, *folders)
    plan.config.data.check()
    return {
        "papers": len(plan.papers),
        "experiments": len(plan.experiments),
        "settings": sum(len(plan.cell(*cell)["settings"]) for cell in plan.cells()),
        "figures": len(plan.figures),
        "tables": len(plan.tables),
        "claims": sum(len(paper.claims) for paper in plan.papers.values()),
        "audited cells": sum(map(len, plan.audited().values())),
    }
