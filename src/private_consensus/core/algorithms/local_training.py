"""Local training: each agent descends on its own records, with noise, and does not communicate."""

from dataclasses import dataclass

from .families.clipped_descent import ClippedDescent


@dataclass(frozen=True, kw_only=True)
class LocalTraining(ClippedDescent):
    r"""Noisy gradient descent of each agent on its own records, without communication.

    .. math:: x_i^{t+1} = x_i^t
        - \eta\bigl(\mathrm{clip}_C(\nabla f_i(x_i^t)) + N(0, \sigma^2 I)\bigr)

    An agent releases its model after the last step. The privacy cost covers all T steps,
    :math:`\mu^2 = T\,\Delta^2/\sigma^2`, so that the models of all iterations may be released.
    Local training is the baseline for the benefit of communication.
    """

    source = "Bassily, Smith, Thakurta, FOCS 2014 (noisy gradient descent), per agent"


ALGORITHM = LocalTraining
