"""Distributed zeroth-order ADMM, D-ZOA (Gratton et al., Algorithm 1)."""

import warnings
from dataclasses import dataclass

import numpy as np

from private_consensus.common.errors import OutsideRange
from private_consensus.kernels.two_point import solve
from private_consensus.privacy.mechanisms import Unproven

from ..parameters import Positive, PositiveInt
from .base import common_value, per_agent
from .families.consensus_admm import ConsensusADMM, neighbourhood_sizes

ENOUGH_SAMPLES = 30
"""Smallest J for which the paper relies on the central limit theorem."""


@dataclass(frozen=True, kw_only=True)
class DZOA(ConsensusADMM):
    r"""Distributed zeroth-order ADMM (D-ZOA), Algorithm 1 of Gratton et al.

    In each outer iteration, :math:`\beta_k` is the result of T steps of the two-point method on
    :math:`F_k`, started at 0, with J pairs of normal vectors per step (9)-(13). The step size is
    :math:`\alpha_t = \alpha_0 R / (L\sqrt{tP\ln 2P})`. Equation (27), solved for
    :math:`\alpha_0 R`, is

    .. math::
        (\alpha_0R)^2 = \frac{\ln 2P}{c\,S}\Bigl(JP\sigma_k^2 + \frac{4\|\beta^c\|^2}{T}\Bigr),
        \qquad S = s_1(1+\ln P) + s_2, \quad
        \sigma_k = \frac{c_1\sqrt{2.1\ln(1.25/\delta)}}{\rho|N_k|N_k\epsilon}

    No noise is added: the paper treats the randomness of the method as Gaussian noise of standard
    deviation :math:`\sigma_k` (25). This is an assumption: Lemma 2 bounds the variance from above,
    whereas privacy requires a lower bound (E2.1, E2.2).

    Parameters
    ----------
    L : float
        Lipschitz constant :math:`L` of the objective in the step size. The paper states no value;
        the quadratic :math:`F_k` has none on the whole space.
    c : float
        Constant of Lemma 2; 0.5 according to the paper.
    T, J : int
        Number of inner steps, and number of pairs of normal vectors per step.
    """

    L: Positive = 1.0
    c: Positive = 0.5
    T: PositiveInt = 100
    J: PositiveInt = 30

    needs = ("gram", "pull", "penalty", "optimum_norm")
    source = "Gratton et al., Algorithm 1, eqs. (7)-(13), (20), (25), (27), (29)"

    def __post_init__(self):
        super().__post_init__()
        if np.any(np.asarray(self.J) < ENOUGH_SAMPLES):
            warnings.warn(
                f"J = {np.min(self.J)}: the paper treats the mean of J differences as Gaussian "
                f"by the central limit theorem and requires J >= {ENOUGH_SAMPLES}",
                OutsideRange,
                stacklevel=2,
            )

    def mechanisms(self, problem, network, horizon):
        reason = "no formal guarantee: no noise is added (E2.1, E2.2)"
        step = "the step size is computed from the norm of the non-private optimum (27)"
        return {
            "optimum norm": Unproven(reason=step, shape=(1,)),
            "estimate": Unproven(reason=reason),
        }

    def primal(self, problem, network, curvature, dual, centre, release, t):
        settings = len(dual)
        norms = np.broadcast_to(problem.optimum_norm[:, None], (settings, release.runs, 1))
        # (27) needs the optimum of all agents, which no agent knows.
        norm = release("optimum norm", np.array(norms))
        estimate = solve(
            problem.gram,
            curvature[..., 0],
            # F_k is b'(G + hI)b/2 + q'b + lambda |b|_1, with this q.
            dual - problem.pull - curvature * centre,
            np.full(settings, problem.penalty),
            self.step_length(norm, problem, network),
            release.key(),
            # The number of earlier solves, which use other random numbers.
            t - 1,
            loops=int(common_value("T", self.T)),
            samples=int(common_value("J", self.J)),
        )
        return release("estimate", estimate)

    def step_length(self, norm: np.ndarray, problem, network) -> np.ndarray:
        r"""Return the first step size :math:`\alpha_0R/(L\sqrt{P\ln 2P})` of each agent.

        ``norm`` is :math:`\|\beta^c\|` per run, broadcastable to [settings, runs, agents].
        """
        dim = problem.dim
        T, J, L, c = (per_agent(field) for field in (self.T, self.J, self.L, self.c))
        noise = per_agent(self.noise) / neighbourhood_sizes(network)
        squared = J * dim * noise**2 + 4.0 * norm**2 / T
        alpha_R = np.sqrt(np.log(2 * dim) / (c * step_sum(T, dim)) * squared)
        return alpha_R / (L * np.sqrt(dim * np.log(2 * dim)))


def step_sum(T, dim: int):
    r"""Return :math:`S = s_1(1+\ln P) + s_2` in (27) for P = ``dim``, in the shape of ``T``.

    The sums over the T inner steps are :math:`s_1 = \sum_t 1/t` and :math:`s_2 = \sum_t t^{-1.5}`.
    """
    t = np.arange(1, int(np.max(T)) + 1)
    s1, s2 = np.cumsum(1.0 / t), np.cumsum(t**-1.5)
    last = np.asarray(T, int) - 1
    return s1[last] * (1.0 + np.log(dim)) + s2[last]


ALGORITHM = DZOA
