"""Test compiled loops against NumPy: random words, normals, differences, inner loops, threads."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from private_consensus.kernels import compiling
from private_consensus.kernels.compiling import limited_threads
from private_consensus.kernels.normals import (
    fill_normals,
    fill_uniforms,
    fill_words,
    normals,
    threefry,
)
from private_consensus.kernels.two_point import solve

KEY = np.array([0x13198A2E, 0x03707344], np.uint32)


# Salmon et al., "Parallel random numbers", known answers of Threefry-2x32 with 13 rounds.
KNOWN = [
    ((0, 0), (0, 0), (0x9D1C5EC6, 0x8BD50731)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0xFD36D048, 0x2D17272C)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xBA3E4725, 0xF27D669E)),
]


def filled(count, counter=0, key=KEY):
    """Return pairs of float32 normals from the compiled generator."""
    return drawn(key, counter, 0, count)


def drawn(key, x, start, count, fill=fill_normals, kind=np.float32):
    """Return the normals that the compiled generator computes for ``count`` counters.

    The counters are (x, start), (x, start + 1), ...
    """
    first, second = np.empty((2, count), kind)
    fill(*key, np.uint32(x), np.uint32(start), first, second)
    return first, second


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_threefry_words_equal_the_published_known_answers(key, counter, expected):
    key, (x, y) = np.array(key, np.uint32), np.array(counter, np.uint32)
    with np.errstate(over="ignore"):
        words = threefry(key, x, y)
    assert tuple(map(int, words)) == expected
    assert tuple(int(w[0]) for w in drawn(key, x, y, 1, fill_words, np.uint32)) == expected


def test_uniforms_are_the_upper_24_bits_of_words():
    uniforms = drawn(KEY, 0, 0, 1000, fill_uniforms)
    for word, uniform in zip(drawn(KEY, 0, 0, 1000, fill_words, np.uint32), uniforms, strict=True):
        np.testing.assert_array_equal(uniform, (word >> np.uint32(8)) * 2.0**-24)


def test_compiled_normals_agree_with_the_numpy_reference():
    first, second = filled(100_000)
    plain = normals(KEY, np.uint32(0), np.arange(100_000, dtype=np.uint32))
    # Near u = 1, float32 has few digits of 1 - u: the error is proportional to 1 / radius.
    radius = np.maximum(np.hypot(*plain), 1e-3)
    for compiled_normals, exact in zip((first, second), plain, strict=True):
        assert (np.abs(compiled_normals - exact) * radius).max() < 1e-5


def test_a_million_normals_have_gaussian_moments_and_distribution():
    drawn = np.concatenate(filled(500_000)).astype(float)
    n = drawn.size
    assert abs(drawn.mean()) < 4 / np.sqrt(n)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((drawn**3).mean()) < 4 * np.sqrt(15 / n)
    assert abs((drawn**4).mean() - 3) < 4 * np.sqrt(96 / n)
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > 0.001
    assert stats.kstest(drawn, stats.norm(scale=1.01).cdf).pvalue < 1e-6
    tail = (np.abs(drawn) > 4).sum()
    assert stats.binomtest(int(tail), n, 2 * stats.norm.sf(4)).pvalue > 0.001


def test_normals_of_neighbouring_counters_keys_and_pairs_are_uncorrelated():
    first_normals, second_normals = filled(200_000)
    later, changed = filled(200_000, counter=1)[0], filled(200_000, key=KEY + np.uint32(1))[0]
    for x, y in (
        (first_normals, second_normals),
        (first_normals, later),
        (first_normals, changed),
        (first_normals[1:], first_normals[:-1]),
    ):
        for power in (1, 2):
            assert abs(np.corrcoef(x**power, y**power)[0, 1]) < 4 / np.sqrt(len(x))


# --- The two-point method -------------------------------------------------------------------------


def objective(hessian, q, penalty, b):
    return 0.5 * (b @ hessian * b).sum(-1) + (b * q).sum(-1) + penalty * np.abs(b).sum(-1)


def difference_quotient(hessian, linear, penalty, b, n, m, u, v):
    """Return the differences of objectives over v, [..., J], without nearly equal numbers."""
    p = b[..., None, :] + u * n
    middle = p + v / 2 * m
    smooth = (m * (middle @ hessian + linear[..., None, :])).sum(-1)
    x = np.clip(p / v, -np.abs(m), np.abs(m))
    return smooth + penalty * (np.abs(x + m) - np.abs(x)).sum(-1)


@pytest.mark.parametrize("t", [1, 7, 100])
def test_the_difference_quotient_equals_the_direct_difference_within_rounding(t):
    """The subtraction loses digits for small v, so the tolerance is its rounding error."""
    rng = np.random.default_rng(t)
    root, q = rng.normal(size=(10, 10)), rng.normal(size=10)
    hessian, b = root @ root.T, rng.normal(size=10)
    b[:3] = 0.0
    n, m = rng.normal(size=(2, 500, 10))
    u, v = 1 / t, 1 / (10 * t) ** 2
    n[:50, :2] = rng.normal(size=(50, 2)) * v / u  # on the scale of the kinks
    p = b + u * n
    values = [objective(hessian, q, 0.2, at) for at in (p + v * m, p)]
    direct = (values[0] - values[1]) / v
    rounding = 20 * np.finfo(float).eps * np.abs(values).max() / v
    quotient = difference_quotient(hessian, q, 0.2, b, n, m, u, v)
    assert np.abs(quotient - direct).max() < rounding
    assert rounding < 1e-2 * np.abs(direct).max()


def scene(settings=3, runs=4, agents=2, dim=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(runs, agents, 12, dim))
    gram = X.swapaxes(-1, -2) @ X / 6
    return {
        "gram": gram,
        "curvature": rng.uniform(10, 30, size=(settings, 1, agents)),
        "linear": rng.normal(size=(settings, runs, agents, dim)) * 8,
        "penalty": np.full(settings, 0.2),
        "step": rng.uniform(0.005, 0.02, size=(settings, runs, agents)),
        "keys": rng.integers(0, 2**32, size=(runs, 2), dtype=np.uint32),
        "counter": 5,
    }


OPTIONS = {"loops": 100, "samples": 30}


def directions_of(keys, counters, dim, samples):
    """Return the normals n and m of one loop, [runs, agents, samples, dim]."""
    n, m = np.empty((2, len(keys), len(counters), samples, dim))
    for run, agent, i in np.ndindex(len(keys), len(counters), dim):
        index = (run, agent, slice(None), i)
        n[index], m[index] = drawn(keys[run], counters[agent], i << 16, samples)
    return n, m


def solve_reference(gram, curvature, linear, penalty, step, keys, counter, *, loops, samples):
    """Compute the result of the compiled solver in NumPy and float64."""
    settings, _, agents, dim = linear.shape
    hessian = gram + curvature[..., None, None] * np.eye(dim)
    b, weight = np.zeros(linear.shape), penalty.reshape(settings, 1, 1, 1)
    for t in range(1, loops + 1):
        counters = (counter * agents + np.arange(agents)) * loops + t - 1
        n, m = directions_of(keys, counters, dim, samples)
        arguments = hessian, linear, weight, b, n, m, 1 / t, 1 / (dim * t) ** 2
        slope = (difference_quotient(*arguments)[..., None] * m).mean(-2)
        b = b - step[..., None] / np.sqrt(t) * slope
    return b


@pytest.mark.parametrize("dim", [1, 4, 10, 17])
def test_the_compiled_inner_loop_agrees_with_the_float64_reference(dim):
    arguments = scene(dim=dim)
    solutions = solve(**arguments, **OPTIONS)
    reference_solutions = solve_reference(**arguments, **OPTIONS)
    size = np.linalg.norm(reference_solutions, axis=-1, keepdims=True)
    assert (np.abs(solutions - reference_solutions) / size).max() < 1e-6


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_the_solution_does_not_depend_on_the_number_of_threads(workers):
    arguments = scene(runs=7)
    with limited_threads(1):
        alone = solve(**arguments, **OPTIONS)
    with limited_threads(workers):
        assert solve(**arguments, **OPTIONS).tobytes() == alone.tobytes()


def test_a_subset_of_settings_and_runs_has_byte_identical_solutions():
    arguments = scene()
    solutions = solve(**arguments, **OPTIONS)
    slices = {"curvature": (slice(1), slice(None)), "linear": (slice(1), slice(2)),
              "step": (slice(1), slice(2))}  # fmt: skip
    subset = {
        key: value[slices[key]] if key in slices else value for key, value in arguments.items()
    }
    subset |= {
        "gram": arguments["gram"][:2],
        "keys": arguments["keys"][:2],
        "penalty": np.full(1, 0.2),
    }
    assert solve(**subset, **OPTIONS).tobytes() == solutions[:1, :2].tobytes()


@pytest.mark.parametrize("pull", [0.0, 1.0, 1e3])
def test_the_solver_agrees_with_the_reference_near_and_far_from_the_kinks(pull):
    """Scale the linear term, so that the coordinates lie near the kink at 0 or far from it."""
    arguments = scene(dim=10)
    arguments["linear"] = arguments["linear"] * pull
    solutions = solve(**arguments, **OPTIONS)
    reference_solutions = solve_reference(**arguments, **OPTIONS)
    assert np.abs(solutions - reference_solutions).max() < 1e-6 * max(
        1.0, np.abs(reference_solutions).max()
    )


def test_too_large_steps_make_the_solutions_of_their_setting_non_finite():
    arguments = scene()
    arguments["step"] = np.stack(
        [arguments["step"][0], arguments["step"][1] * 1e6, arguments["step"][2]]
    )
    solutions = solve(**arguments, **OPTIONS)
    assert np.isfinite(solutions[[0, 2]]).all()
    assert not np.isfinite(solutions[1]).any()


def test_machine_code_is_cached_per_version_of_all_source_files(monkeypatch):
    """Numba compares only the file of a function, not those of the functions that it calls."""
    compiling._cache_folder.cache_clear()
    before = compiling._cache_folder()
    compiling._cache_folder.cache_clear()
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read_bytes(path) + b"\n")
    after = compiling._cache_folder()
    compiling._cache_folder.cache_clear()
    assert Path(before).parent == Path(after).parent and before != after
