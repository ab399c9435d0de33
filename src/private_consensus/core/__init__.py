"""Networks, problems, solvers, algorithms and their simulation.

These five objects are the most important ones; read their modules in this order:

1. :class:`.networks.Network`: a graph with its mixing matrix.
2. :class:`.problems.Problem`: data per agent, loss, gradient and sensitivity.
3. :class:`.algorithms.base.Algorithm`: one step of a method, its noise and its releases.
4. :func:`.simulation.simulate`: the loop over iterations, batched over settings and runs.
5. :class:`.randomness.Streams`: named random streams.

The package imports ``common``, ``privacy`` and ``kernels`` (compiled versions of expensive steps).
"""
