"""Recovery of the noise of an execution from its messages, with adapters for some algorithms.

An adapter repeats the steps of an algorithm from the recorded messages, under the hypothesis that
the data are those of a problem. The noise that explains a message is the message minus what the
step sends without noise. :func:`recovery_of` returns the adapter of an algorithm: that of the
nearest class in :data:`ADAPTERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import (
    DRAW,
    Algorithm,
    Iterative,
    stack,
)
from private_consensus.core.algorithms.coordinate_descent import CoordinateDescent
from private_consensus.core.algorithms.decor import DECOR
from private_consensus.core.algorithms.families import random_weights
from private_consensus.core.algorithms.families.admm import ADMMFamily, of_agents
from private_consensus.core.algorithms.families.approximate_admm import ApproximateADMM
from private_consensus.core.algorithms.families.decentralized_sgd import DecentralizedSGD
from private_consensus.core.algorithms.families.functional_mechanism import FunctionalMechanism
from private_consensus.core.algorithms.families.objective_perturbation import ObjectivePerturbed
from private_consensus.core.algorithms.families.q_dpsgd import QDPSGD
from private_consensus.core.algorithms.families.random_aggregates import RandomAggregates
from private_consensus.core.algorithms.gradient_descent import GradientDescent
from private_consensus.core.algorithms.ipp_admm import ImprovedPlausiblyPrivateADMM
from private_consensus.core.algorithms.ldp_admm import LocallyPrivateADMM
from private_consensus.core.algorithms.local_training import LocalTraining
from private_consensus.core.algorithms.mafalda_sgd import MAFALDASGD
from private_consensus.core.algorithms.q_dpsgd_2 import QDPSGD2
from private_consensus.core.algorithms.sdm_dsgd import SDMDSGD
from private_consensus.core.algorithms.secure_aggregation import SecureAggregation
from private_consensus.core.algorithms.zip_dl import ZipDL, noise_covariance
from private_consensus.privacy import aggregation

Residuals = dict[str, np.ndarray]
"""Noise of one iteration over its declared scale, [runs, agents, dim], by noise site."""

FAR = 8.0
"""Largest unit noise at which the response of a message is tested to be affine."""
NEAR = 1e-3
"""Change of unit noise that changes a message, unless the message repeats an earlier one."""
ROUNDING = 1e-5
"""Relative rounding error of an algorithm that may compute in 32 bits."""
SAME_NOISE = 1e-3
"""Largest difference, over the scale, of noise that is recovered from equal messages."""
ENDS = np.array([0.0, 1.0])[:, None, None, None]
"""Weights at the ends of an interval."""


class Hypothesis(NamedTuple):
    """Recorded execution, and the data set under which its noise is recovered.

    Parameters
    ----------
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    streams : Streams
        Random numbers other than noise.
    execution : Execution
        Has ``sent`` and ``internal``, each [runs, iterations, agents, dim] or None if it must not
        be used.
    """

    problem: Any
    network: Any
    streams: Any
    execution: Any


class RecordedStep(NamedTuple):
    """Recorded iteration of an execution, with the state before it.

    Parameters
    ----------
    scale : mapping
        Noise scale of the iteration, by site name.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    recorded : Execution
        The messages ``sent`` in this iteration, and ``internal``, which is None if it must not be
        used.
    t : int
        Iteration, counted from 1.
    """

    scale: Mapping[str, np.ndarray]
    state: Any
    problem: Any
    network: Any
    draw: Any
    recorded: Any
    t: int


class Recovery:
    """Recovery of the noise of an algorithm that is not iterative, or adds it last in each step.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated algorithm of the execution, or a batch of it alone.
    """

    def __init__(self, algorithm: Any):
        self.algorithm = algorithm

    def log_likelihood(self, hypothesis: Hypothesis) -> np.ndarray | None:
        """Compute the log density, [runs], of all messages under the hypothesis, up to a constant.

        The result is None if the density follows from the residuals.
        """
        return None

    def residuals(self, hypothesis: Hypothesis) -> Iterator[Residuals]:
        """Yield the noise, over its declared scale, that explains each iteration's messages.

        The iteration ends if no noise explains a message, or if no draw makes a step send it.
        """
        problem, network, streams, execution = hypothesis
        horizon = execution.sent.shape[1]
        sites = self.algorithm.noise_sites(problem, network, horizon)
        if not sites or not isinstance(self.algorithm, Iterative):
            return
        scales = {
            site.name: np.broadcast_to(site.scale, (horizon, *np.shape(site.scale)[1:]))
            for site in sites
        }
        batch = recovery_of(stack([self.algorithm]))
        state = batch.algorithm.start(problem, network, streams, 1)
        draws = batch.algorithm.draws(problem, streams)
        for t in range(1, horizon + 1):
            scale = {name: values[t - 1] for name, values in scales.items()}
            recorded = execution.at(t)
            step = RecordedStep(scale, state, problem, network, next(draws), recorded, t)
            noise_by_site = batch.residual(step)
            yield noise_by_site
            if not noise_by_site:
                return
            state = batch._resent(step, noise_by_site)
            if state is None:
                if t < horizon:
                    yield {}
                return

    def residual(self, step: RecordedStep) -> Residuals:
        """Recover the noise of an iteration over its scale, [runs, agents, dim] by site.

        The result is empty if no noise explains the messages.
        """
        send_with = partial(self._sent_with, step)
        if DRAW not in step.scale:
            return {"message": (step.recorded.sent - send_with(0.0)) / step.scale["message"]}
        drawn = _noise_of(step.draw)
        is_one_per_message = drawn is not None and drawn.shape == step.recorded.sent.shape
        if not is_one_per_message:
            return {}
        unit = explained(send_with, step.recorded.sent, self._sent_before(step))
        return {} if unit is None else {DRAW: unit}

    def _sent_before(self, step: RecordedStep) -> np.ndarray | float:
        """Return the messages of the iteration before; 0 before the first iteration."""
        if step.t == 1:
            return 0.0
        return self.algorithm.observables(step.state, step.problem, step.t - 1)["released"][0]

    def with_residual(self, draw: Any, noise_by_site: Residuals) -> Any:
        """Return the draw with which the same step sends the recorded messages.

        Parameters
        ----------
        draw
        noise_by_site : dict
            Noise over its scale by site, [runs, agents, dim], as :meth:`residual` returns it.
        """
        (unit,) = noise_by_site.values()
        if isinstance(draw, np.ndarray):
            return filled(unit, draw)
        return draw._replace(noise=filled(unit, draw.noise))

    def after(self, step: RecordedStep, draw: Any) -> Any:
        """Return the state after the iteration with another draw."""
        return self.algorithm.step(step.state, step.problem, step.network, draw, step.t)

    def _sent_with(self, step: RecordedStep, unit: Any) -> np.ndarray:
        """Return the messages of an iteration under the specified noise, [runs, agents, dim]."""
        noise = without_noise(step.draw)
        if np.any(unit):
            unit = unit + np.zeros(np.asarray(_noise_of(step.draw)).shape)
            noise = self.with_residual(step.draw, {DRAW: unit})
        after = self.after(step, noise)
        return self.algorithm.observables(after, step.problem, step.t)["released"][0]

    def _resent(self, step: RecordedStep, noise_by_site: Residuals) -> Any:
        """Return the state after a step that sends the recorded messages; None if none does.

        A step may change the sign or the size of its draw before it adds the draw as noise. The
        draw that makes the step send a message then differs from the noise of the message. It is
        found from the noise that the step adds for a trial draw, number by number.
        """
        drawn, recorded = noise_by_site, step.recorded
        for _ in range(2):
            after = self.after(step, self.with_residual(step.draw, drawn))
            outputs = self.algorithm.observables(after, step.problem, step.t)
            sent, internal = (
                None if outputs.get(name) is None else outputs[name][0]
                for name in ("released", "internal")
            )
            if sent is None or _agree(sent, recorded.sent, ROUNDING * _largest(recorded.sent)):
                return after
            resent = replace(recorded, sent=sent, internal=internal)
            added = self.residual(step._replace(recorded=resent))
            if added.keys() != noise_by_site.keys():
                return None
            if all(_agree(added[site], noise_by_site[site], SAME_NOISE) for site in added):
                return after
            drawn = {site: drawn[site] * _ratio(noise_by_site[site], added[site]) for site in added}
        return None


class MessageRecovery(Recovery):
    """Recovery for ``local_training``: messages minus steps without noise, over the noise scale."""

    def residual(self, step: RecordedStep) -> Residuals:
        noiseless = self.after(step, np.zeros_like(step.draw)).x[0]
        return {DRAW: (step.recorded.sent - noiseless) / self.message_scale(step.t)}

    def message_scale(self, t: int) -> float:
        """Return the factor of the draw of iteration t in the message of this iteration."""
        return float(np.reshape(self.algorithm.message_scale, -1)[0])


class FilteredRecovery(MessageRecovery):
    """Recovery for ``mafalda_sgd``, whose messages also contain the draws of earlier iterations."""

    def message_scale(self, t: int) -> float:
        return super().message_scale(t) * self.algorithm.filter_of(t)[t - 1, t - 1]


class SumRecovery(Recovery):
    """Recovery for ``secure_aggregation``: the noise of the sum of all agents."""

    def residual(self, step: RecordedStep) -> Residuals:
        noiseless = self.after(step, np.zeros_like(step.draw)).x[0]
        unit = np.reshape(self.algorithm.message_scale, -1)[0] / step.problem.n_agents
        return {DRAW: ((step.recorded.sent - noiseless) / unit).mean(-2, keepdims=True)}

    def with_residual(self, draw: Any, noise_by_site: Residuals) -> Any:
        """Return equal shares of the noise of the sum for all agents."""
        return np.broadcast_to(noise_by_site[DRAW] / np.sqrt(draw.shape[-2]), draw.shape)


class CoordinateRecovery(Recovery):
    """Recovery for ``coordinate_descent``: the noise of the updated coordinate."""

    def residual(self, step: RecordedStep) -> Residuals:
        x, problem, sent = step.state.x, step.problem, step.recorded.sent
        noiseless = problem.project(x - problem.gradient(x) / problem.smoothness)[0]
        unit = (sent - noiseless) / step.scale["message"]
        return {"message": np.where(moved(sent, x[0]), unit, np.nan)}

    def with_residual(self, draw: Any, noise_by_site: Residuals) -> Any:
        unit = noise_by_site["message"]
        return draw._replace(noise=filled(unit, draw.noise), coordinate_mask=np.isfinite(unit))


class CorrelatedRecovery(Recovery):
    """Recovery for ``decor``: independent units of the correlated noise of all agents."""

    def residual(self, step: RecordedStep) -> Residuals:
        batch = self.algorithm
        noiseless = self.after(step, step.draw._replace(noise=np.zeros_like(step.draw.noise[0]))).x[
            0
        ]
        total = (step.recorded.sent - noiseless) / np.reshape(batch.message_scale, -1)[0]
        root = np.linalg.cholesky(batch.covariance(step.network))
        return {DRAW: np.linalg.solve(root, total)}

    def with_residual(self, draw: Any, noise_by_site: Residuals) -> Any:
        return draw._replace(noise=noise_by_site[DRAW])


class ObjectiveRecovery(Recovery):
    """Recovery for objective perturbation: the linear term of which a message is the minimiser."""

    def residual(self, step: RecordedStep) -> Residuals:
        sign = 1.0 if self.algorithm.where == "dual" else -1.0
        noise = _linear_term(self.algorithm, step.recorded.sent, step)
        return {"minimisation": sign * noise / step.scale["minimisation"]}


class ApproximateRecovery(Recovery):
    """Recovery for approximate minimisers, with noise in the objective and on the output."""

    def residual(self, step: RecordedStep) -> Residuals:
        scale, sent, minimiser = step.scale, step.recorded.sent, step.recorded.internal
        if not self.algorithm.noise:
            after = self.after(step, without_noise(step.draw))
            return {"message": (sent - after.minimiser[0]) / scale["message"]}
        if minimiser is None:
            return {}
        noise = _linear_term(self.algorithm, minimiser, step)
        return {
            "minimisation": noise / scale["minimisation"],
            "message": (sent - minimiser) / scale["message"],
        }

    def with_residual(self, draw: Any, noise_by_site: Residuals) -> Any:
        inner, output = draw.noise
        output = filled(noise_by_site["message"], output)
        return draw._replace(noise=(noise_by_site.get("minimisation", inner), output))


class SelectiveRecovery(ApproximateRecovery):
    """Recovery for ``ipp_admm``: noise of the messages that are sent."""

    def residual(self, step: RecordedStep) -> Residuals:
        noise_by_site = super().residual(step)
        if noise_by_site:
            sent = moved(step.recorded.sent, step.state.x[0]).any(-1, keepdims=True)
            noise_by_site["message"] = np.where(sent, noise_by_site["message"], np.nan)
        return noise_by_site


class RandomWeightsRecovery(Recovery):
    """Likelihood for messages around a point that is uniform in an interval, with Laplace noise.

    The interval and the noise are those of the algorithm, whose ``step`` returns the ends of the
    interval for the weights 0 and 1.
    """

    def log_likelihood(self, hypothesis: Hypothesis) -> np.ndarray | None:
        problem, network, streams, execution = hypothesis
        algorithm = self.algorithm
        if not algorithm.has_losses:
            return None
        fixed = stack([replace(algorithm, weights="fixed")])
        state = fixed.start(problem, network, streams, 1)
        total, times = np.zeros(len(execution.sent)), range(1, execution.sent.shape[1] + 1)
        draws = random_weights.draws(algorithm, problem, streams)
        for t, draw in zip(times, draws, strict=False):
            noiseless_draw = without_noise(draw)
            sent = execution.at(t).sent
            both = noiseless_draw._replace(weights=ENDS + 0 * sent)
            low, high = fixed.step(state, problem, network, both, t).x
            inverse = 1.0 / algorithm.noise.scales(len(times))[t - 1]
            away = np.abs(sent - (low + high) / 2)
            total += aggregation.log_mass(away, np.abs(high - low), inverse).sum((-1, -2))
            unit = (sent - (low + high) / 2) * inverse
            half = noiseless_draw._replace(noise=unit, weights=0.5 + 0 * sent)
            state = fixed.step(state, problem, network, half, t)
        return total


class LinksRecovery(Recovery):
    """Recovery for ``zip_dl`` from the messages on all edges, from which the states follow.

    The weighted noise of an agent sums to 0. Hence its messages to others determine the part of
    its step that it keeps.
    """

    def residuals(self, hypothesis: Hypothesis) -> Iterator[Residuals]:
        problem, network, _, execution = hypothesis
        links, weights = execution.links, np.asarray(network.mixing)
        if links is None or not self.algorithm.noise_sites(problem, network, links.shape[1]):
            return
        x = np.zeros_like(links[:, 0, :, 0])
        other_weights = weights * ~np.eye(len(weights), dtype=bool)
        for sent in np.moveaxis(links, 1, 0):
            stepped = self.algorithm.descent(problem, x)
            yield {"message": self._whitened(sent - stepped[..., None, :], other_weights, weights)}
            retained = stepped - (other_weights[..., None] * sent).sum(-2)
            x = retained + np.einsum("va,...avd->...vd", other_weights, sent)

    def _whitened(
        self, noise: np.ndarray, other_weights: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Transform the noise of messages to independent units.

        The noise is [..., agents, receivers, dim], the result [..., agents, neighbours x dim]. It
        is NaN for the neighbours that an agent has fewer than the largest number.
        """
        scale = float(self.algorithm.eta) * float(self.algorithm.noise.scale)
        degrees = np.count_nonzero(other_weights, axis=1)
        whitened = np.full((*noise.shape[:-2], degrees.max(), noise.shape[-1]), np.nan)
        for u, degree in enumerate(degrees):
            root = np.linalg.cholesky(noise_covariance(weights, u))
            received = noise[..., u, other_weights[u] > 0, :] / scale
            whitened[..., u, :degree, :] = np.linalg.solve(root, received)
        return whitened.reshape(*whitened.shape[:-2], -1)


class CoefficientsRecovery(Recovery):
    """Recovery for the functional mechanism: noise of the released coefficients."""

    def residuals(self, hypothesis: Hypothesis) -> Iterator[Residuals]:
        problem, network, _, execution = hypothesis
        algorithm = self.algorithm
        if execution.internal is None or not algorithm.noise_sites(problem, network, 1):
            return
        exact = problem.coefficients
        covariance = exact.distance if algorithm.fair == "perrec" else exact.covariance
        covariance = algorithm.alpha * covariance
        linear = exact.linear + (covariance if algorithm.fair in ("plus", "perrec") else 0.0)
        noiseless = algorithm.noised_once(exact.quadratic, linear, covariance)
        scale = np.concatenate(algorithm.noised_scales(problem), axis=-1)
        yield {"coefficients": (execution.internal[:, 0] - noiseless[:, None]) / scale}


class RoundsRecovery(Recovery):
    """Recovery for rounds of sampled gradients: each round is repeated from the recorded models."""

    def residuals(self, hypothesis: Hypothesis) -> Iterator[Residuals]:
        problem, network, streams, execution = hypothesis
        if execution.internal is None:
            return
        horizon = execution.internal.shape[1]
        noisy_algorithm = self.ready(horizon)
        noiseless_algorithm = replace(noisy_algorithm, sigma=0.0 * noisy_algorithm.sigma.scale)
        state = noiseless_algorithm.start(problem, network, streams, 1)
        draws = noiseless_algorithm.draws(problem, streams)
        for t in range(1, horizon + 1):
            draw, reached = next(draws), execution.at(t).internal
            noiseless = noiseless_algorithm.step(
                state._replace(x=state.x.copy()), problem, network, draw, t
            )
            scale = noisy_algorithm.noise_scale(0, noisy_algorithm.sizes(0, draw.speeds))[..., None]
            unit = (reached - noiseless.x[0]) / (
                self.noise_weight(noisy_algorithm) * np.where(scale > 0, scale, np.nan)
            )
            yield {"gradient": self.noised(unit, reached, state.x[0])}
            state = noiseless._replace(x=reached[None].copy())

    def ready(self, horizon: int) -> Any:
        """Return a batch of one setting, prepared for a run of ``horizon`` rounds."""
        return stack([self.algorithm])

    def noise_weight(self, batch: Any) -> float:
        """Return the factor by which a step multiplies the noise of a gradient."""
        return float(np.ravel(batch.alpha)[0])

    def noised(self, unit: np.ndarray, reached: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the recovered noise, over its scale, with NaN in coordinates without noise.

        Parameters
        ----------
        unit, reached, before : ndarray, shape (runs, agents, p)
            Recovered noise, and models after and before the round.
        """
        return unit


class SparseRoundsRecovery(RoundsRecovery):
    """Recovery for ``sdm_dsgd``, whose rounds change some of the coordinates."""

    def noise_weight(self, batch: Any) -> float:
        theta, alpha, c = (float(np.ravel(v)[0]) for v in (batch.theta, batch.alpha, batch.c))
        return theta * alpha / c

    def noised(self, unit: np.ndarray, reached: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the recovered noise, with NaN in coordinates that the round did not change."""
        return np.where(moved(reached, before), unit, np.nan)


class QuantisedRoundsRecovery(RoundsRecovery):
    """Recovery for Q-DPSGD, whose steps depend on the number of rounds."""

    def ready(self, horizon: int) -> Any:
        return replace(stack([self.algorithm]), T=np.array([float(horizon)]))

    def noise_weight(self, batch: Any) -> float:
        a, e, _ = batch.coefficients(0)
        return a * e


class DiscreteMessageRecovery(QuantisedRoundsRecovery):
    """Recovery for ``q_dpsgd_2``: the message minus the rounded model.

    A uniform part of a grid step makes the discrete noise continuous.
    """

    def residuals(self, hypothesis: Hypothesis) -> Iterator[Residuals]:
        problem, network, streams, execution = hypothesis
        sent = execution.sent
        sites = self.algorithm.noise_sites(problem, network, sent.shape[1])
        if execution.internal is None or not sites:
            return
        ready = self.ready(sent.shape[1])
        x, grid = ready.start(problem, network, streams, 1).x[0], ready.coefficients(0)[2]
        within = streams.sequence("data", "uniform", (problem.n_agents, problem.dim), "in a step")
        for t, draw in zip(range(sent.shape[1]), ready.draws(problem, streams), strict=False):
            rounded = np.empty_like(x)
            for run, key in enumerate(draw.keys["rounding"]):
                grid.quantize(x[run], key, t * problem.n_agents, rounded[run])
            offset = grid.resolution * (next(within) - 0.5)
            yield {"message": (sent[:, t] - rounded + offset) / sites[0].scale[t]}
            x = np.ascontiguousarray(execution.internal[:, t], dtype=x.dtype)


ADAPTERS: dict[type, type[Recovery]] = {
    Algorithm: Recovery,
    ApproximateADMM: ApproximateRecovery,
    CoordinateDescent: CoordinateRecovery,
    DECOR: CorrelatedRecovery,
    DecentralizedSGD: RoundsRecovery,
    FunctionalMechanism: CoefficientsRecovery,
    GradientDescent: Recovery,
    ImprovedPlausiblyPrivateADMM: SelectiveRecovery,
    LocalTraining: MessageRecovery,
    LocallyPrivateADMM: RandomWeightsRecovery,
    MAFALDASGD: FilteredRecovery,
    ObjectivePerturbed: ObjectiveRecovery,
    QDPSGD: QuantisedRoundsRecovery,
    QDPSGD2: DiscreteMessageRecovery,
    RandomAggregates: RandomWeightsRecovery,
    SDMDSGD: SparseRoundsRecovery,
    SecureAggregation: SumRecovery,
    ZipDL: LinksRecovery,
}
"""Adapter by class of algorithms. Packages with algorithms of their own add theirs. An entry also
states that the adapter recovers the noise of the class, see :func:`recovers_noise_itself`."""


def recovery_of(algorithm: Algorithm) -> Recovery:
    """Return the adapter of the nearest class in :data:`ADAPTERS` for an algorithm.

    The algorithm is the calibrated algorithm of the execution, or a batch of it alone.
    """
    kinds = (ADAPTERS[kind] for kind in type(algorithm).__mro__ if kind in ADAPTERS)
    return next(kinds)(algorithm)


def recovers_noise_itself(algorithm: Algorithm) -> bool:
    """Return True if an adapter that was written for the algorithm's package recovers its noise.

    The adapter of a built-in class may overlook what a subclass of another package overrides.
    """
    kind = next(kind for kind in type(algorithm).__mro__ if kind in ADAPTERS)
    return kind is not Algorithm and _package(kind) == _package(type(algorithm))


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _linear_term(batch: ADMMFamily, minimiser: np.ndarray, step: RecordedStep) -> np.ndarray:
    r"""Recover the noise of the linear term from the minimiser of a batch of one setting.

    It is :math:`-\nabla f_i(\hat x_i) - a_i - D_i(\hat x_i - c_i) - \Phi_i\hat x_i`, of shape
    [runs, agents, dim].
    """
    noiseless_draw = step.draw._replace(noise=np.zeros_like(minimiser))
    centre = batch.centre(step.state, step.network, noiseless_draw)[0]
    penalty = of_agents(batch.penalty(step.network, step.t))
    slope = step.problem.gradient(minimiser) + step.state.dual[0] + penalty * (minimiser - centre)
    added = batch.added_curvature(step.problem)
    return -(slope if added is None else slope + np.max(added) * minimiser)


def explained(
    sent_with: Callable[[Any], np.ndarray], sent: np.ndarray, before: np.ndarray | float
) -> np.ndarray | None:
    """Return the unit noise of the messages ``sent``; None if no noise explains them.

    The result has the sign of the noise in the messages, which may differ from that of the draw.
    Two data sets are therefore compared by their messages, also if the sign depends on the data.
    It is NaN in coordinates that the noise does not change.

    Parameters
    ----------
    sent_with : callable
        Maps unit noise to a message. It has to be affine in each coordinate separately. The
        noise of messages that are clipped, rounded or averaged afterwards is therefore not
        recovered.
    sent : ndarray, shape (runs, agents, dim)
        Recorded messages.
    before : ndarray or float
        Messages of the iteration before. A message that repeats them if its change is small, noise
        included, does not determine its noise.
    """
    noiseless = sent_with(0.0)
    if noiseless.shape != sent.shape:  # on the other data set
        return None
    response = sent_with(1.0) - noiseless
    has_no_response = response == 0
    if has_no_response.all():
        return None
    tolerance = ROUNDING * (np.abs(response).max() + np.abs(noiseless).max())
    uneven = FAR * np.cos(np.arange(response.size)).reshape(response.shape)
    if not np.allclose(
        sent_with(uneven), noiseless + uneven * response, rtol=ROUNDING, atol=tolerance
    ):
        return None
    unit = np.where(has_no_response, 0.0, sent - noiseless) / np.where(
        has_no_response, 1.0, response
    )
    if not np.allclose(sent_with(unit), sent, rtol=ROUNDING, atol=tolerance):
        return None
    is_repeated = (sent == before) & ~has_no_response
    if is_repeated.any() and (sent_with(unit + NEAR) == sent)[is_repeated].any():
        return None
    return np.where(has_no_response, np.nan, np.sign(response) * unit)


def _largest(values: np.ndarray) -> float:
    """Return the largest finite absolute value."""
    return float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))


def _agree(values: np.ndarray, second: np.ndarray, tolerance: float) -> bool:
    """Return True if no two numbers differ by more than a tolerance; NaN equals any number."""
    return not (np.abs(values - second) > tolerance).any()


def _ratio(noise: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return ``noise`` over ``added`` per entry; 1 if ``added`` is 0."""
    return np.divide(noise, added, out=np.ones(np.shape(added)), where=added != 0)


def _noise_of(draw: Any) -> np.ndarray | None:
    noise = draw if isinstance(draw, np.ndarray) else getattr(draw, "noise", None)
    return noise if isinstance(noise, np.ndarray) else None


def filled(unit: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Replace NaN in recovered noise, which has no information, by the original draw."""
    return np.where(np.isnan(unit), drawn, unit)


def without_noise(draw: Any) -> Any:
    """Return the draw with its noise set to 0; other random numbers stay."""
    if isinstance(draw, np.ndarray):
        return np.zeros_like(draw)
    if not hasattr(draw, "noise"):
        return draw
    return draw._replace(noise=_zeros_like(draw.noise))


def _zeros_like(noise: Any) -> Any:
    if isinstance(noise, tuple):
        return tuple(map(np.zeros_like, noise))
    return np.zeros_like(noise)


def moved(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return True for entries that a step changes by more than rounding error."""
    return ~np.isclose(now, before, rtol=1e-9, atol=1e-12)
