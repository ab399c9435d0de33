"""How fast D-ZOA's inner loops and their normals are, against NumPy and against a plain loop.

`pytest benchmarks/bench_d_zoa.py --benchmark-enable` prints the times; run as a script it says
seconds a setting of the paper (100 runs x 200 x 100 x 30 x 5 agents) and nanoseconds a normal.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from private_consensus.kernels.normals import fill_normals
from private_consensus.kernels.two_point import solve, solve_reference

AGENTS, DIM, LOOPS, SAMPLES = 5, 10, 100, 30
OUTER, RUNS = 200, 100


def scene(runs: int, settings: int = 1) -> dict:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(runs, AGENTS, 20, DIM))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return {
        "gram": 2 * X.swapaxes(-1, -2) @ X,
        "curvature": np.full((1, 1, AGENTS), 28.0),
        "linear": rng.normal(size=(settings, runs, AGENTS, DIM)),
        "penalty": np.full(settings, 0.2),
        "step": np.full((settings, 1, 1), 0.02),
        "keys": rng.integers(0, 2**32, size=(runs, 2), dtype=np.uint32),
        "counter": 0,
        "loops": np.full(settings, LOOPS),
        "samples": np.full(settings, SAMPLES),
        "u1": 1.0,
    }


def looped(gram, curvature, linear, penalty, step, keys, counter, loops, samples, u1):
    """One agent, one step, one direction after the other, with the subtraction of (9)."""
    rng = np.random.default_rng(1)
    _, runs, agents, dim = linear.shape
    out = np.zeros((1, runs, agents, dim))
    for run in range(runs):
        for k in range(agents):
            hessian = gram[run, k] + curvature[0, 0, k] * np.eye(dim)
            q = linear[0, run, k]
            b = out[0, run, k]
            for t in range(1, loops[0] + 1):
                total, u, v = np.zeros(dim), u1 / t, u1 / (dim * t) ** 2
                for _ in range(samples[0]):
                    n, m = rng.normal(size=dim), rng.normal(size=dim)
                    p = b + u * n
                    high, low = p + v * m, p
                    F = [0.5 * x @ hessian @ x + q @ x + 0.2 * np.abs(x).sum() for x in (high, low)]
                    total += (F[0] - F[1]) / v * m
                b -= step[0, 0, 0] / np.sqrt(t) * total / samples[0]
    return out


def best(call, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def seconds_a_setting(engine, runs: int, settings: int = 1, repeats: int = 3, **options) -> float:
    """Seconds for a whole setting, from one outer iteration of some runs."""
    given = scene(runs, settings)
    engine(**given, **options)
    return best(lambda: engine(**given, **options), repeats) * OUTER * RUNS / runs / settings


@pytest.mark.parametrize(("engine", "runs"), [(solve, 20), (solve_reference, 4)])
def test_outer_iteration(benchmark, engine, runs):
    benchmark(engine, **scene(runs))


def test_compiled_is_many_times_faster_than_numpy_and_hundreds_than_a_loop():
    fast = seconds_a_setting(solve, 20, workers=1)
    assert seconds_a_setting(solve_reference, 4) > 8 * fast
    assert seconds_a_setting(looped, 1, repeats=1) > 100 * fast


def nanoseconds_a_normal() -> tuple[float, float]:
    """Compiled, and NumPy's own generator in float32."""
    count = 64_000
    first, second = np.empty(count, np.float32), np.empty(count, np.float32)
    key = np.uint32(1)

    def fill():
        fill_normals(key, key, key, key, first, second)

    fill()
    rng = np.random.default_rng(0)
    numpy = best(lambda: rng.standard_normal(2 * count, dtype=np.float32), 20)
    return best(fill, 20) / (2 * count) * 1e9, numpy / (2 * count) * 1e9


def test_normals_are_many_times_faster_than_those_of_a_library():
    compiled, numpy = nanoseconds_a_normal()
    assert numpy > 5 * compiled


FIRST = """
import time
from bench_d_zoa import scene, solve
begin = time.perf_counter()
solve(**scene(1))
print(time.perf_counter() - begin)
"""


def first_call(cache: str) -> float:
    """Seconds of the first solve of a new process that keeps machine code in a folder."""
    surroundings = os.environ | {"XDG_CACHE_HOME": cache}
    said = subprocess.run(
        [sys.executable, "-c", FIRST], env=surroundings, cwd=Path(__file__).parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(said.stdout)


def main() -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"first call ever, compiling:       {first_call(folder):8.1f} s")
        print(f"first call of a later process:    {first_call(folder):8.1f} s")
    solve(**scene(1))
    print("compiled {:.2f} ns a normal, NumPy float32 {:.2f} ns".format(*nanoseconds_a_normal()))
    print(f"compiled, all threads:    {seconds_a_setting(solve, 20, repeats=9):8.2f} s a setting")
    print(f"  24 settings together:   {seconds_a_setting(solve, 20, 24, 5):8.2f} s a setting")
    print(f"NumPy, float64:           {seconds_a_setting(solve_reference, 4):8.0f} s a setting")
    print(f"a plain loop:             {seconds_a_setting(looped, 1, repeats=1):8.0f} s a setting")


if __name__ == "__main__":
    main()
