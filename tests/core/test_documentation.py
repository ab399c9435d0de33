"""Test that the pages of the documentation link to each other and that lists are complete."""

import re
from pathlib import Path
from types import SimpleNamespace

import altair as alt
import numpy as np
import pytest

from private_consensus.core.problems.logistic_regression import LogisticRegression

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "page", ["explanation/privacy.md", "how-to/own_data.md", "how-to/check_an_algorithm.md"]
)
def test_the_python_blocks_of_a_page_run(page, capsys):
    variables: dict = {}
    exec(
        re.search(r"^```python run\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)[1],
        variables,
    )
    assert capsys.readouterr().out
    if "done" in variables:
        done = variables["done"]
        assert done.guarantee.proven and 0 < done.guarantee.epsilon <= 1
    if "own_data" in page:
        error = variables["problem"].measure("test_error", done.models.released)
        assert error.mean() < 0.15 and isinstance(variables["chart"], alt.TopLevelMixin)


def test_the_block_on_clipping_has_the_stated_scale_and_sensitivity():
    """A record changes the gradient by at most 2K/N_i.

    Without clipping, the gradient without the ridge term is N/N_i times that of f_i.
    """
    text = (DOCS / "reference/problems_and_networks.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    random, sizes, ridge = np.random.default_rng(0), np.array([6, 4, 2]), 0.1
    rows, labels = random.standard_normal((3, 6, 2)), random.choice([-1.0, 1.0], (3, 6))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    padding = np.arange(6) >= sizes[:, None]
    rows[padding], labels[padding] = 0.0, -1.0
    z = random.standard_normal((1, 1, 3, 2))

    def gradient(clip, rows=rows):
        problem = LogisticRegression(rows, labels, rows[0], labels[0], 0.3, ridge, sizes=sizes)
        step = {"np": np, "self": SimpleNamespace(clip=clip), "z": z, "problem": problem}
        exec(block, step)
        return step["gradient"], problem.gradient(z)

    unclipped, exact = gradient(np.inf)
    np.testing.assert_allclose(unclipped - ridge * z, (exact - ridge * z) * 6 / sizes[:, None])
    neighbour = rows.copy()
    neighbour[2, 0] = -rows[2, 0]
    change = np.linalg.norm(gradient(0.01, neighbour)[0] - gradient(0.01)[0], axis=-1)
    np.testing.assert_allclose(change[0, 0], [0, 0, 2 * 0.01 / 2], atol=1e-12)
