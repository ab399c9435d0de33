"""Test the sensitivities and the noise that audits measure in copies with a fault."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus.audits.evidence import recovered
from private_consensus.audits.exact_costs import _Pairs
from private_consensus.audits.examples import examples
from private_consensus.audits.execution import execute
from private_consensus.audits.judging import DeclaredSetting, declaration
from private_consensus.audits.neighbours import Attack, attacks
from private_consensus.audits.sampled_batches import sampled_record_change
from private_consensus.audits.streams import AuditStreams

from . import steps
from .faults import FAULTS, SIGNED
from .tampering import dressed, own_noise

DELTA = 1e-2


def broken(name, algorithm):
    """Return a copy of an algorithm with the fault of a name."""
    return next(fault for fault in FAULTS if fault.name == name).broken(algorithm)


def calibrated(example, algorithm=None):
    """Return the algorithm of an example, or a copy of it, with calibrated noise."""
    return (algorithm or example.algorithm).calibrate(example.budget, *example.world[1:3],
                                                      example.horizon)  # fmt: skip


@pytest.mark.parametrize(("name", "fraction"), [("decor", 0.5), ("local_training", 0.5)])
def test_a_record_of_twice_the_weight_costs_twice_the_attained_fraction(name, fraction):
    """The exact shift of all messages is computed for a label of logistic regression."""
    (example,) = examples(name)
    setting = example.problem, example.network, example.horizon
    correct = calibrated(example)
    declared = correct.releases(*setting)
    attack = next(attacks(example.problem, example.network, None, nearby=False))
    lengths = []
    for algorithm in (correct, broken("weight not counted", correct)):
        pairs = _Pairs(DeclaredSetting(algorithm, *setting, DELTA), 0, None)
        pairs.executed(attack, 0).messages(np.zeros((1, 1)))
        (shift,) = next(pairs.shifts(attack))
        lengths.append(np.linalg.norm(shift.units) / declaration(declared, DELTA).mu)
    assert lengths == pytest.approx([fraction, 2 * fraction], rel=1e-4)


def of_two_labels(example):
    """Return data with record 0 in one of two classes that no other record has."""
    labels = np.repeat(example.problem.labels[None], 2, axis=0)
    labels[:, 0] = 8, 9
    pair = tuple(replace(example.problem, labels=changed) for changed in labels)
    return Attack(pair, example.network, np.ones(example.problem.dim))


@pytest.mark.parametrize("fault", [None, "clipped mean", "weights after clipping"])
def test_the_effect_of_a_sampled_record_is_compared_with_the_noise_that_is_drawn(fault):
    (example,) = examples("dsgd")
    correct = calibrated(example)
    algorithm = broken(fault, correct) if fault else correct
    attack = of_two_labels(example)
    declared = algorithm.releases(attack.pair[0], attack.network, example.horizon)
    report = sampled_record_change(
        algorithm, attack, example.horizon, releases=declared, level=1e-3, seed=0
    )
    assert bool(report.findings) == (fault is not None)


@pytest.mark.parametrize("name", ["dsgd", "sdm_dsgd"])
def test_noise_with_a_sign_of_the_data_is_not_the_effect_of_a_record(name):
    """Equal draws give opposite noise on the two data sets; messages differ by twice the noise."""
    (example,) = examples(name)
    attack = of_two_labels(example)
    label = attack.pair[0].labels[0]
    signed = steps.noise_added(
        lambda unit, t, problem: unit if problem.labels[0] == label else -unit
    )
    correct = calibrated(example)
    algorithm = dressed(correct, type(correct), signed, *own_noise(correct, in_step=True))
    declared = algorithm.releases(attack.pair[0], attack.network, example.horizon)
    report = sampled_record_change(
        algorithm, attack, example.horizon, releases=declared, level=1e-3, seed=0, runs=20
    )
    assert not report.findings
    assert [gap.item for gap in report.untested] == ["effect of a sampled record of agent 0"]


def recovered_noise(example, algorithm, runs=40):
    """Return the noise that the audit recovers from the messages, by site."""
    noisy = calibrated(example, algorithm)
    streams = AuditStreams.labelled("noise", runs, 0)
    execution = execute(noisy, example.problem, example.network, streams, example.horizon)
    return recovered(noisy, example.problem, example.network, streams, execution)


@pytest.mark.parametrize("name", ["pdop", "dvp", "p_admm", "pp_admm_renyi", "dp_ci"])
def test_noise_with_a_sign_of_the_data_is_recovered_with_its_length(name):
    """The noise is also recovered in later iterations, which start from earlier messages."""
    (example,) = examples(name)
    plain = recovered_noise(example, example.algorithm)
    signed = recovered_noise(example, SIGNED.broken(example.algorithm))
    assert plain.keys() == signed.keys() and plain
    for site, noise in plain.items():
        assert noise.shape[1] == example.horizon
        np.testing.assert_allclose(np.abs(signed[site]), np.abs(noise), atol=2e-3)


def test_correlated_noise_with_a_sign_of_the_data_stays_white():
    (example,) = examples("decor")
    (noise,) = recovered_noise(example, SIGNED.broken(example.algorithm), runs=400).values()
    assert noise.shape[1] == example.horizon
    # 800 numbers per agent and iteration; their mean square has the deviation 0.05
    assert (noise**2).mean((0, 3)) == pytest.approx(1.0, abs=0.25)
