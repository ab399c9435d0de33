r"""PP-ADMM: private although the local problems are solved approximately (paper 004, section 3.4).

.. math::
    \hat x_i &\approx \arg\min_x f_i(x) + (a_i + b_{i1})^Tx + \tfrac{D_i}2\|x - c_i\|_2^2,
        \qquad \|\nabla\|_2 \le \beta \\
    x_i &= \hat x_i + b_{i2}, \qquad b_{i1} \sim N(0, \sigma_1^2 I), \quad
        b_{i2} \sim N(0, \sigma_2^2 I)

    \sigma_1 = \frac{2C\sqrt{2\ln(1.25/\delta_1)}}{|D_i|\epsilon_3}, \qquad
    \sigma_2 = \frac{\beta}{\sqrt{2\rho_2}\,(\hat\lambda/N + 2\eta|V_i|)}, \qquad
    \hat\lambda \ge \frac{2.8\,N C c_1}{(\epsilon_1-\epsilon_3)|D_i|}

Every iteration is charged :math:`\rho_1 + \rho_2` in zCDP, with :math:`\rho_1` from
:math:`\epsilon_1` (Theorem 6). What does not hold, as printed: a bound in (epsilon, delta) gives
none in zCDP (errata E4.3), and two approximate minimisers are :math:`2\beta/m` apart, not
:math:`\beta/m` (E4.4). Both are kept; an accountant is told :math:`2\beta/m`, and that the loss of
the perturbed objective is not proven.

The repair, ``perturbed: output``, has :math:`b_{i2}` alone. With curvature m, and gradients that a
record moves by at most :math:`\Delta_2`, two points with gradient norms of at most :math:`\beta` on
neighbouring data are at most :math:`(\Delta_2 + 2\beta)/m` apart: a Gaussian mechanism, nothing of
which is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..errors import require
from ..privacy import CONVERSIONS, Release, calibrate, zcdp_epsilon, zcdp_rho
from .base import NoiseSite, column, filled, without_noise
from .families.admm import ADMMFamily, Noises
from .families.objective_perturbation import jacobian_loss, noiseless_slope
from .families.perturbed import LAWS, Draw
from .parameters import fraction, nonnegative, one_of, only, positive

RULES = ("literal", "sharp")
PERTURBED = ("objective", "output")
COARSE_SOLVER = "what the solver leaves open may outweigh what a record changes (2 beta)"
UNPROVEN = "the shift of objective perturbation depends on the output (E4.3), taken as Gaussian"


@dataclass(frozen=True, kw_only=True)
class PlausiblyPrivateADMM(ADMMFamily):
    r"""PP-ADMM; ``noise`` is :math:`\sigma_1`.

    Parameters
    ----------
    beta : float
        :math:`\beta`, a gradient norm in the units of :math:`f_i`, verified at every solve. A
        solve begins at the last :math:`\hat x_i`, which a large one accepts as it is.
    splits : float
        Share of an iteration's budget that pays for the approximation: :math:`\rho_2`.
    e3 : float
        :math:`\epsilon_3/\epsilon_1`.
    lam_rule : {"literal", "sharp"}
        The printed condition on :math:`\hat\lambda`, or what its proof needs:
        :math:`\hat\lambda/N + 2\eta|V_i|` on the left. The problem's own ridge is the least.
    delta_1 : float
        :math:`\delta_{i1}`.
    step_conversion : {"safe", "shortcut"}
        Between :math:`\rho_1` and :math:`\epsilon_1`: as the experiments say, or Theorem 6.
    perturbed : {"objective", "output"}
        What hides the data: both noises as printed, or the output's alone.
    ridge : float
        :math:`\hat\lambda/N`; what the problem has already is not added again.
    output_noise : float
        :math:`\sigma_2` times the curvature, :math:`\beta/\sqrt{2\rho_2}`.
    """

    law: str = one_of("gaussian", ("gaussian",))
    growth: float = only(1.0)
    penalty_growth: float = only(1.0)
    calibration: str = "formula"
    rho_conversion: str | None = "shortcut"
    beta: float = positive(10.0**-3.5)
    splits: float = fraction(0.001)
    e3: float = fraction(0.99, expected="above 0 and below 1: epsilon_i3 < epsilon_i1")
    lam_rule: str = one_of("sharp", RULES)
    delta_1: float = fraction(1e-4)
    step_conversion: str = one_of("safe", CONVERSIONS[:2])
    perturbed: str = one_of("objective", PERTURBED)
    ridge: float = nonnegative(0.0)
    output_noise: float = nonnegative(0.0)

    source: ClassVar[str] = "Paper 004, section 3.4, Algorithm 2, Theorem 6"
    where: ClassVar[str] = "dual"

    def __post_init__(self):
        super().__post_init__()
        given = self.rho_conversion is not None
        require(given, "algorithm.rho_conversion", None, f"one of {', '.join(CONVERSIONS)}")
        if self.perturbed == "output":
            quiet = bool(np.all(np.asarray(self.noise) == 0))
            require(quiet, "algorithm.noise", self.noise, "0 where the output alone is perturbed")
        else:
            both = bool(np.all((np.asarray(self.noise) > 0) == (np.asarray(self.output_noise) > 0)))
            expected = "above 0 where there is noise, and only there"
            require(both, "algorithm.output_noise", self.output_noise, expected)

    @property
    def noisy(self) -> bool:
        return bool(np.all(np.asarray(self.output_noise) > 0))

    # Algorithm 2.

    def draws(self, problem, streams) -> Iterator[Draw]:
        shape = (problem.n_agents, problem.dim)
        output = streams.sequence("noise", "normal", shape, "output")
        for unit in self.units(problem, streams):
            yield Draw((unit, next(output)))

    def noises(self, unit, network, t):
        curvature = column(self.ridge) + self.penalty(network, t)
        return Noises(self.scale(t) * unit[0], 0.0, column(self.output_noise) / curvature * unit[1])

    def minimise(self, problem, state, linear, penalty, centre, t):
        """The added ridge joins the penalty: their sum has its centre nearer to the origin."""
        total = penalty + np.maximum(column(self.ridge) - problem.least_convexity, 0.0)
        beta = column(self.beta)
        within = beta[..., 0] if isinstance(beta, np.ndarray) else beta
        return problem.proximal(
            linear, total, penalty * centre / total, state.minimiser, tolerance=within
        )

    # What audits ask for.

    def noise_sites(self, problem, network, horizon):
        """In the minimisation, where there is noise in it, and on what is sent."""
        curvature = np.reshape(self.ridge + self.penalty(network, 1), (1, -1, 1))
        curvatures = np.broadcast_to(curvature, (horizon, *curvature.shape[1:]))
        last = self._output_release(problem, network, horizon)
        output = NoiseSite("message", "gaussian", self.output_noise / curvatures, "l2", last)
        if self.perturbed == "output":
            return [output]
        scale = np.broadcast_to(np.reshape(self.noise, (1, 1, 1)), (horizon, 1, 1))
        moved = np.full(horizon, problem.record_change("l2") / self.noise)
        return [NoiseSite("minimisation", "gaussian", scale, "l2", moved), output]

    def _output_release(self, problem, network, horizon: int) -> np.ndarray:
        """Change of the output over its noise, [iterations]."""
        outputs = PlausiblyPrivateADMM.releases(self, problem, network, horizon)[-1]
        return np.full(horizon, float(np.max(outputs.losses())))

    def residual(self, scale, state, problem, network, draw, shown, t):
        """Both noises from the iterates before the output's: no observer has them."""
        if self.perturbed == "output":
            after = self.step(state, problem, network, without_noise(draw), t)
            return {"message": (shown.sent - after.minimiser[0]) / scale["message"]}
        found = shown.internal
        if found is None:
            return {}
        slope = noiseless_slope(
            problem,
            found,
            state.dual[0],
            self.penalty(network, t),
            super().centre(state, network, draw)[0],
        )
        added = np.max(np.maximum(np.max(self.ridge) - problem.strong_convexity, 0.0))
        return {
            "minimisation": -(slope + added * found) / scale["minimisation"],
            "message": (shown.sent - found) / scale["message"],
        }

    def with_residual(self, draw, found):
        inner, output = draw.noise
        output = filled(found["message"], output)
        return draw._replace(noise=(found.get("minimisation", inner), output))

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        require(horizon >= 1, "horizon", horizon, "a whole number >= 1")
        self.check(problem, network)
        if self.calibration == "given":
            return self
        if not budget.private:
            return replace(self, noise=0.0, output_noise=0.0, ridge=0.0)
        printed = self.for_all(self.rho_of(budget), problem, network, horizon)
        if self.perturbed == "objective":
            printed.jacobian(problem, network)
        if self.calibration == "formula":
            return printed

        def scaled_noise(factor: float) -> PlausiblyPrivateADMM:
            return replace(
                printed, noise=factor * printed.noise, output_noise=factor * printed.output_noise
            )

        return scaled_noise(
            calibrate(lambda k: scaled_noise(k).releases(problem, network, horizon), budget)
        )

    def for_all(self, rho: float, problem, network, horizon: int):
        """A copy with its noise set such that the whole run costs rho."""
        return self.for_one(rho / horizon, problem, network)

    def for_one(self, rho: float, problem, network):
        """A copy with the noise and the ridge for one message that costs rho."""
        if self.perturbed == "output":
            moved = self._moved_gradient(problem)
            ridge = problem.least_convexity
            return replace(
                self, noise=0.0, output_noise=float(moved / np.sqrt(2.0 * rho)), ridge=ridge
            )
        rho_1, rho_2 = (1.0 - self.splits) * rho, self.splits * rho
        epsilon_1 = zcdp_epsilon(rho_1, self.delta_1, conversion=self.step_conversion)
        epsilon_3 = self.e3 * epsilon_1
        return replace(
            self,
            noise=float(problem.record_change("l2") * self._tail / epsilon_3),
            output_noise=float(self.beta / np.sqrt(2.0 * rho_2)),
            ridge=self._ridge(epsilon_1 - epsilon_3, problem, network),
        )

    def _moved_gradient(self, problem) -> Any:
        r""":math:`\Delta_2 + 2\beta`."""
        return problem.record_change("l2") + 2.0 * column(self.beta)

    def _attained_shift(self, problem, network) -> float | None:
        r"""By how much some pair of records moves :math:`\hat x_i` in every iteration, times the
        curvature m: what the exact minimiser does, less :math:`2\beta`."""
        own = np.min(problem.strong_convexity)
        curvature = np.min(self.penalty(network, 1)) + max(float(self.ridge) - float(own), 0.0)
        share = problem.attained_minimiser_share("l2", curvature)
        if share is None:
            return None
        return float(max(share * problem.record_change("l2") - 2.0 * self.beta, 0.0))

    def _attack(self, problem, network, horizon: int) -> Release | None:
        """Messages, as they are told apart by :meth:`_attained_ratio`."""
        ratio = self._attained_ratio(problem, network)
        if ratio is None:
            return None
        return Release("gaussian", ratio, 1.0, count=horizon, attained=1, note=COARSE_SOLVER)

    def _attained_ratio(self, problem, network) -> float | None:
        r"""The pair that moves the minimiser by :math:`g/m` whatever the noise :math:`b_{i1}` is.

        A message is, along the row, :math:`1/m`-Lipschitz in :math:`b_{i1}` and adds
        :math:`b_{i2}`; by the isoperimetric inequality of Gaussians, a shift by :math:`g/m` is then
        told at least as well as one of a Gaussian of deviation
        :math:`\sqrt{\sigma_1^2 + (m\sigma_2)^2}/m`.
        """
        shift = self._attained_shift(problem, network)
        if shift is None:
            return None
        return float(shift / np.hypot(self.noise, self.output_noise))

    @property
    def _tail(self) -> Any:
        return np.sqrt(2.0 * np.log(1.25 / column(self.delta_1)))

    def _ridge(self, left: float, problem, network) -> float:
        r""":math:`\hat\lambda/N` that :math:`\epsilon_1 - \epsilon_3` asks for."""
        needed = 2.8 * problem.record_curvature / left
        if self.lam_rule == "sharp":
            needed -= float(np.min(self.penalty(network, 1)))
        return float(max(needed, problem.least_convexity))

    def jacobian(self, problem, network) -> float:
        r""":math:`2.8\kappa` with the ridge that is set; :math:`\kappa \le 1/2` is demanded."""
        more = max(float(self.ridge) - problem.least_convexity, 0.0)
        return float(jacobian_loss(problem, np.min(self.penalty(network, 1)), "paper", more))

    def step_rhos(self, problem) -> tuple[Any, Any]:
        r""":math:`\rho_1` and :math:`\rho_2` at the noise that is set, as they broadcast."""
        if self.perturbed == "output":
            return 0.0, (self._moved_gradient(problem) / column(self.output_noise)) ** 2 / 2
        epsilon_3 = problem.record_change("l2") * self._tail / column(self.noise)
        epsilon_1 = epsilon_3 / column(self.e3)
        rho_1 = zcdp_rho(epsilon_1, column(self.delta_1), conversion=self.step_conversion)
        return rho_1, (column(self.beta) / column(self.output_noise)) ** 2 / 2

    def loss_by_formula(self, problem, network, t):
        r""":math:`\rho_1 + \rho_2`, in zCDP."""
        return np.ones((1, 1, 1, 1)) * sum(self.step_rhos(problem))

    def rho_by_formula(self, problem, network, horizon):
        r"""Theorem 6: :math:`T(\rho_1 + \rho_2)`."""
        return float(horizon * sum(self.step_rhos(problem)))

    def releases(self, problem, network, horizon):
        if not self.noisy:
            return super().releases(problem, network, horizon)
        if self.perturbed == "output":
            moved = self._moved_gradient(problem)
            shift = self._attained_shift(problem, network)
            attained = None if shift is None else shift / moved
            return [Release("gaussian", moved, self.output_noise, count=horizon, attained=attained)]
        paid = self.jacobian(problem, network)
        moved = problem.record_change(LAWS[self.law].norm)
        many = {"count": horizon, "proven": False, "note": UNPROVEN}
        return [
            Release(
                "gaussian",
                moved,
                self.noise,
                attack=self._attack(problem, network, horizon),
                **many,
            ),
            Release("pure", epsilon=paid, **many),
            Release("gaussian", 2.0 * self.beta, self.output_noise, count=horizon),
        ]


ALGORITHM = PlausiblyPrivateADMM
