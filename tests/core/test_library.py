"""Test the top-level Python package: exported names, and a run in one call."""

import re
from pathlib import Path

import numpy as np
import pytest

import private_consensus as pc
from private_consensus.common.errors import InvalidInput
from private_consensus.core.problems.mean_estimation import MeanEstimation

BUDGET = pc.Budget(1.0, 1e-5)


def means(streams):
    """Build a problem with one random mean per agent, which differs between runs."""
    return MeanEstimation(
        np.stack([g.uniform(-0.2, 0.2, (5, 3)) for g in streams.generators("data")]), 50, 1.0
    )


def ring(streams):
    return pc.networks.build(streams, "ring", 5)


def simulated(budget=BUDGET, **options):
    algorithm = pc.algorithms.load("gradient_descent")(
        calibration="gaussian_dp", spending="whole", **options.pop("algorithm", {})
    )
    return pc.simulate(algorithm, means, ring, budget, 6, seed=3, **options)


def test_unknown_names_are_no_attributes_and_exported_names_are_listed_by_dir():
    assert len(pc.__all__) <= 25 and set(pc.__all__) <= set(dir(pc))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        pc.simulat  # noqa: B018


def test_the_accountant_confirms_the_calibrated_budget():
    """Gaussian DP is exact for compositions of Gaussian mechanisms."""
    done = simulated(runs=2)
    assert done.claimed == BUDGET
    assert done.guarantee.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-6)
    assert done.guarantee.proven


def test_the_error_of_a_missing_observable_names_the_method_that_returns_it():
    with pytest.raises(InvalidInput) as error:
        simulated(measures=["models.node_error"])
    assert (error.value.key, error.value.value) == ("measures", "models")
    assert "GradientDescent.observables" in error.value.expected


def test_a_fixed_problem_is_shared_by_all_runs():
    """Without noise, runs on one problem and one network cannot differ."""
    streams = pc.Streams(0, (0,), {"data": "d"})
    algorithm = pc.algorithms.load("gradient_descent")()
    budget = pc.Budget(np.inf, 0.0)
    done = pc.simulate(algorithm, means(streams), ring(streams), budget, 4)
    errors = done.measurements.filter(t=4)["value"]
    assert len(errors) == 10 and errors.n_unique() == 1


def test_the_python_example_of_the_readme_runs(capsys):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(block, variables := {})
    done = variables["done"]
    assert done.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    last = done.measurements.filter(done.measurements["t"] == 20)
    assert last["metric"].unique().to_list() == ["normalised_error"] and last["value"].max() < 0.03
    output = capsys.readouterr().out
    assert "not contradicted" in output
    assert "epsilon 0.91" in text and "distance 1, 20 pairs: largest epsilon 0.9098" in output
    assert "0.02 about the\nopposite agent" in text
    assert "distance 5, 10 pairs: largest epsilon 0.02" in output


@pytest.mark.parametrize(
    ("call", "correct"),
    [
        (lambda: pc.simulate(None, means, ring, BUDGET, horizont=3), "horizon"),
        (lambda: pc.problems.load("lasso").build(None, 5, recrods=3), "records"),
        (lambda: pc.algorithms.load("gradient_descent")(nosie=1.0), "noise"),
        (lambda: pc.mechanisms.Gaussian(sensitvity=1.0), "sensitivity"),
        (lambda: pc.Budget(1.0, dleta=1e-5), "delta"),
        (lambda: pc.account([], dleta=1e-5), "delta"),
    ],
)
def test_a_misspelt_argument_gives_an_error_with_the_correct_name(call, correct):
    with pytest.raises(pc.InvalidInput, match=rf"did you mean {correct}\?"):
        call()


def test_the_guarantee_states_that_it_is_above_the_claim():
    """D-ZOA adds no noise."""
    problem = pc.problems.load("lasso").build(pc.Streams(0, (0,)), 5, records=20, dim=3)
    done = pc.simulate(pc.algorithms.load("d_zoa")(), problem, ring, pc.Budget(0.9, 0.01), 2)
    assert str(done.guarantee).startswith("No guarantee: epsilon is infinite, above the claimed")
    assert done.guarantee.derivation.startswith(str(done.guarantee))
