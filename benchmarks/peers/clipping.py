"""Mean of gradients that are clipped record by record, of a perceptron 784-50-10: ten agents, each
with a model of its own and twenty records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..bench_q_dpsgd import BATCH, CLIP, batches, scene
from .timing import line, seconds

WHAT = "clipped gradients of ten models"


def measured() -> Iterator[dict[str, Any]]:
    """Seconds of all agents' gradients."""
    problem, _, _ = scene("MNIST")
    x, rows, sizes, clip, _ = batches(problem)
    with threadpool_limits(1, "blas"):
        exact = problem.clipped_gradient(x, rows, sizes, clip)
        ours = seconds(lambda: problem.clipped_gradient(x, rows, sizes, clip))
        for name, gradient, note in _peers(problem, x, rows):
            off = float(np.abs(gradient() - exact).max())
            if off > 1e-5:
                raise SystemExit(f"{name}: gradients differ by {off}")
            yield line(WHAT, name, ours, seconds(gradient), f"within {off:.0e}", note)


def _peers(problem, x, rows):
    for make in (_torch_func, _opacus, _jax):
        try:
            yield from make(problem, x, rows)
        except ImportError:
            continue


def _flat(parts) -> np.ndarray:
    return np.concatenate([np.asarray(part).reshape(len(part), -1) for part in parts], axis=1)


def _torch_func(problem, x, rows):
    import torch
    from torch.func import grad, vmap
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(1)
    a = torch.from_numpy(problem.features[rows])
    y = torch.from_numpy(problem.labels[rows].astype(np.int64))
    models = tuple(torch.from_numpy(part.copy()) for part in problem.layers(x))

    def loss(model, a, y):
        W1, b1, W2, b2 = model
        return cross_entropy(torch.sigmoid(a @ W1 + b1[0]) @ W2 + b2[0], y)

    def of_agent(model, a, y):
        own = vmap(grad(loss), (None, 0, 0))(model, a, y)
        norms = sum((g.flatten(1) ** 2).sum(1) for g in own).sqrt()
        weights = 1 / (torch.clamp(norms / CLIP, min=1) * BATCH)
        return tuple(torch.tensordot(weights, g, 1) for g in own)

    every = vmap(of_agent)
    yield "torch.func", lambda: _flat(g.numpy() for g in every(models, a, y)), ""


def _jax(problem, x, rows):
    import jax
    import jax.numpy as jnp

    a, y = jnp.asarray(problem.features[rows]), jnp.asarray(problem.labels[rows])
    models = tuple(jnp.asarray(part) for part in problem.layers(x))

    def loss(model, a, y):
        W1, b1, W2, b2 = model
        scores = jax.nn.sigmoid(a @ W1 + b1[0]) @ W2 + b2[0]
        return jax.nn.logsumexp(scores) - scores[y]

    def of_agent(model, a, y):
        own = jax.vmap(jax.grad(loss), (None, 0, 0))(model, a, y)
        norms = jnp.sqrt(sum((g.reshape(len(g), -1) ** 2).sum(1) for g in own))
        weights = 1 / (jnp.maximum(1.0, norms / CLIP) * BATCH)
        return tuple(jnp.tensordot(weights, g, 1) for g in own)

    every = jax.jit(jax.vmap(of_agent))
    yield "JAX", lambda: _flat(every(models, a, y)), "compiled before it is timed"


def _opacus(problem, x, rows):
    import torch
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    torch.set_num_threads(1)
    batch = [
        (torch.from_numpy(problem.features[own]), torch.from_numpy(problem.labels[own]).long())
        for own in rows
    ]
    modules = [_module(problem, own) for own in x]
    loss = torch.nn.CrossEntropyLoss(reduction="none")

    ghosts = [
        GradSampleModuleFastGradientClipping(
            module, max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="sum"
        )
        for module in modules
    ]

    def ghost():
        return np.stack([_ghost_gradient(*pair) for pair in zip(ghosts, batch, strict=True)])

    def _ghost_gradient(model, one):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.loss_reduction = "sum"
        mean = torch.nn.CrossEntropyLoss(reduction="sum")
        optimizer.zero_grad()
        clipped = DPLossFastGradientClipping(model, optimizer, mean, loss_reduction="sum")
        clipped(model(one[0]), one[1]).backward()
        return _vector(p.grad / BATCH for p in model.parameters())

    yield "Opacus, ghost clipping", ghost, "one model per call"

    samples = [GradSampleModule(_module(problem, own), loss_reduction="sum") for own in x]

    def stored():
        return np.stack([_stored_gradient(*pair) for pair in zip(samples, batch, strict=True)])

    def _stored_gradient(model, one):
        model.zero_grad(set_to_none=True)
        loss(model(one[0]), one[1]).sum().backward()
        own = [p.grad_sample for p in model.parameters()]
        norms = sum((g.flatten(1) ** 2).sum(1) for g in own).sqrt()
        weights = 1 / (torch.clamp(norms / CLIP, min=1) * BATCH)
        found = _vector(torch.tensordot(weights, g, 1) for g in own)
        for p in model.parameters():
            p.grad_sample = None
        return found

    yield "Opacus, gradients of records stored", stored, "one model per call"


def _module(problem, own):
    """A torch model; its matrices are transposed."""
    import torch

    W1, b1, W2, b2 = (torch.from_numpy(part.copy()) for part in problem.layers(own))
    first, second = torch.nn.Linear(*W1.shape), torch.nn.Linear(*W2.shape)
    with torch.no_grad():
        for layer, W, b in ((first, W1, b1), (second, W2, b2)):
            layer.weight.copy_(W.T)
            layer.bias.copy_(b[0])
    return torch.nn.Sequential(first, torch.nn.Sigmoid(), second)


def _vector(gradients) -> np.ndarray:
    W1, b1, W2, b2 = gradients
    return np.concatenate([part.detach().numpy().ravel() for part in (W1.T, b1, W2.T, b2)])
