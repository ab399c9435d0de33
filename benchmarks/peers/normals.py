"""Float32 normals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import kstest

from private_consensus.kernels.normals import fill_normals

from .timing import line, seconds

COUNT = 128_000


def measured() -> Iterator[dict[str, Any]]:
    """Seconds a number; the law is checked by the test of Kolmogorov and Smirnov."""
    first, second = np.empty(COUNT // 2, np.float32), np.empty(COUNT // 2, np.float32)
    key = np.uint32(1)

    def fill():
        fill_normals(key, key, key, key, first, second)
        return np.concatenate((first, second))

    ours = seconds(lambda: fill_normals(key, key, key, key, first, second)) / COUNT
    for name, draw in _peers():
        law = [kstest(numbers, "norm").pvalue for numbers in (fill(), np.asarray(draw()))]
        if min(law) < 1e-6:
            raise SystemExit(f"{name}: not normal, p = {law}")
        yield line("a normal, float32", name, ours, seconds(draw) / COUNT, "normal, both (KS)")


def _peers():
    generator = np.random.default_rng(0)
    yield "NumPy Generator", lambda: generator.standard_normal(COUNT, dtype=np.float32)
    try:
        import torch

        torch.set_num_threads(1)
        yield "torch.randn", lambda: torch.randn(COUNT)
    except ImportError:
        pass
    try:
        import jax

        draw = jax.jit(lambda key: jax.random.normal(key, (COUNT,)))
        yield "jax.random.normal", lambda: draw(jax.random.key(0)).block_until_ready()
    except ImportError:
        pass
