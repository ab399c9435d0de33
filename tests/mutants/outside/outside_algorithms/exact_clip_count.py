"""Gradient descent with an adaptive clip whose count has no noise.

Declares what adaptive_clip_descent declares: T Gaussian releases of gradients and T of counts.
The count is exact, and so is the released clip.
"""

from dataclasses import dataclass

from .adaptive_clip_descent import AdaptiveClipDescent


@dataclass(frozen=True, kw_only=True)
class ExactClipCount(AdaptiveClipDescent):
    """Gradient descent with an adaptive clip whose count has no noise."""

    def count(self, below, noise):
        return below.sum(-1, keepdims=True).astype(float)


ALGORITHM = ExactClipCount
EXAMPLE = "logistic_regression"
