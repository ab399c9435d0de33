"""Synthetic comparison results in which the loss grows by a factor from method to method."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from private_consensus.common import yamls
from private_consensus.common.provenance import write_text
from private_consensus.comparison.design import ComparisonDesign, cells, described, read_comparison
from private_consensus.comparison.schema import COLUMNS, MEASURES, TUNINGS
from private_consensus.reproduction.experiments import results

ROOT = Path(__file__).parents[2]
WORSE = 1.5
"""Factor between the losses of a method and of the next."""


def smoke() -> ComparisonDesign:
    """Return the design of the repository at smoke scale."""
    return read_comparison(yamls.read(ROOT / "config" / "comparison.yaml")).at("smoke")


def rows(design: ComparisonDesign, noise: float = 0.1, runs: int | None = None) -> pl.DataFrame:
    """Return synthetic results with one row per cell, method, tuning, run and measure.

    Losses fall with epsilon. Methods are ordered as in the design, up to noise per run.
    """
    rng = np.random.default_rng(0)
    records = []
    for cell in cells(design):
        keys = {key: value for key, value in cell.row().items() if key != "axis"}
        for rank, (name, method) in enumerate(design.methods.items()):
            if method.problems is not None and cell.environment.problem not in method.problems:
                continue
            private = method.observer != "none"
            guarantee = {
                "delta": design.delta,
                "observer": method.observer,
                "method": name,
                "label": method.title,
                "proven": private,
                "epsilon_accountant": 0.995 * cell.epsilon if private else float("inf"),
                "epsilon_lower": 0.5 * cell.epsilon if private else float("inf"),
            }
            for tuning in TUNINGS:
                for run in range(runs or design.runs):
                    loss = WORSE**rank / cell.epsilon * np.exp(noise * rng.standard_normal())
                    for measure in MEASURES:
                        value = np.exp(-loss) if "accuracy" in measure else loss
                        label = {"tuning": tuning, "run": run, "measure": measure}
                        records.append({**keys, **guarantee, **label, "value": float(value)})
    return pl.DataFrame(records, schema=COLUMNS)


def write(folder: Path, design: ComparisonDesign) -> None:
    """Write ``results.parquet`` and ``cells.json`` in the format of the workflow."""
    results.write(rows(design), folder / "results.parquet", results.stamp({}, "", "synthetic"))
    write_text(folder / "cells.json", json.dumps(described(design, [])))
