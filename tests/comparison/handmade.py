"""Small table of comparison results with synthetic values."""

import polars as pl

BASE = {
    "problem": "mean_estimation", "agents": 10, "graph": "ring", "partition": "iid",
    "missing": 0.0, "links": 0.0, "epsilon": 1.0,
}  # fmt: skip


def rows(method, values, measure="excess_loss_mean", tuning="tuned_paid", **changes):
    """Return the rows of one method in one cell, one row per run."""
    cell = {key: changes.pop(key, value) for key, value in BASE.items()}
    return [
        {
            **cell, "delta": 1e-5, "observer": "eavesdropper", "method": method, "label": method,
            "tuning": tuning, "run": run, "measure": measure, "value": float(value),
            "proven": True, "epsilon_accountant": cell["epsilon"], "epsilon_lower": 0.0, **changes,
        }
        for run, value in enumerate(values)
    ]  # fmt: skip


def table(*row_lists):
    return pl.DataFrame([row for method_rows in row_lists for row in method_rows])
