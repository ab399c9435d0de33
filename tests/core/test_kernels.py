"""Test that compiled code reads and writes no memory outside of its arrays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import kernels
import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.kernels import compiling, vectors
from private_consensus.kernels.messages import descend
from private_consensus.kernels.normals import fill_normals, fill_uniforms, fill_words
from private_consensus.kernels.rounds import keys, mix_and_step, steps_of
from private_consensus.publishing.comparison import ROUNDING

HERE = Path(__file__).parent
GUARD, WIDTH = 0xA5, 256
"""Guard byte, and the number of guard bytes before and after each buffer."""


def in_process(program: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a program with other environment variables."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=HERE,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=900,
    )


# --- Checked build --------------------------------------------------------------------------------

OUTSIDE = """
import numpy as np
from private_consensus.kernels.compiling import compiled
from private_consensus.kernels.vectors import LANES, load, load_everywhere, load_first
from private_consensus.kernels.vectors import store

@compiled
def write(a, i): store(a, i, load(a, 0))
@compiled
def first(a, i): store(a, 0, load_first(a, i, 3))
@compiled
def everywhere(a, i): store(a, 0, load_everywhere(a, i))
@compiled
def plain(a, i): a[i] = 1

a = np.zeros(LANES * LANES, np.float32)
last = {"write": a.size - LANES, "first": a.size - 3, "everywhere": a.size - 1, "plain": a.size - 1}
for function in (write, first, everywhere, plain):
    end = last[function.__name__]
    function(a, end)
    for index in (end + 1, -a.size - 1):
        try:
            function(a, index)
        except IndexError:
            continue
        raise SystemExit(f"{function.__name__} accepts {index}")
print("all refused")
"""


def test_the_checked_build_refuses_each_index_outside_of_an_array():
    done = in_process(OUTSIDE, PRIVATE_CONSENSUS_CHECKED_KERNELS="1")
    assert done.stdout.strip() == "all refused", done.stdout + done.stderr


def test_kernels_pass_bounds_checks_with_byte_identical_results():
    """Run all kernels in `make fuzz`; `make test` omits those that are slow to compile."""
    program = "import json, kernels; print(json.dumps(kernels.hashes(kernels.chosen())))"
    done = in_process(program, PRIVATE_CONSENSUS_CHECKED_KERNELS="1")
    assert done.returncode == 0, done.stderr[-2000:]
    checked_hashes = json.loads(done.stdout)
    assert len(checked_hashes) >= 3 and checked_hashes == kernels.hashes(kernels.chosen())


# --- Guard values ---------------------------------------------------------------------------------


class Guarded:
    """NumPy replacement that surrounds each new array with guard values."""

    def __init__(self):
        self.buffers = []

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype=float):
        return self._new(shape, dtype, 0xFF)

    def zeros(self, shape, dtype=float):
        return self._new(shape, dtype, 0)

    def empty_like(self, array):
        return self._new(array.shape, array.dtype, 0xFF)

    def aligned(self, count, kind=np.float32):
        return self._new((count,), kind, 0)

    def _new(self, shape, dtype, fill):
        size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        buffer = np.full(size + 2 * WIDTH + 64, GUARD, np.uint8)
        begin = WIDTH + (-buffer.ctypes.data - WIDTH) % 64
        buffer[begin : begin + size] = fill
        self.buffers.append((buffer, begin, begin + size))
        return buffer[begin : begin + size].view(dtype).reshape(shape)

    def intact(self):
        return all(
            (buffer[:begin] == GUARD).all() and (buffer[end:] == GUARD).all()
            for buffer, begin, end in self.buffers
        )


MODULES = ("backpropagation", "logistic", "messages", "rounds", "rows", "two_point")


@pytest.mark.parametrize("entry", kernels.ENTRIES, ids=lambda entry: entry.__name__)
def test_kernels_do_not_change_the_guard_values_around_buffers(monkeypatch, entry):
    expected = [
        [array.tobytes() for array in kernels.arrays_of(entry(dim))] for dim in kernels.DIMS
    ]  # compiled, so that no kernel is compiled against the guarded arrays below
    guarded = Guarded()
    for name in MODULES:
        module = sys.modules[f"private_consensus.kernels.{name}"]
        monkeypatch.setattr(module, "np", guarded)
        if hasattr(module, "aligned"):  # the module's own arrays are padded
            monkeypatch.setattr(module, "aligned", guarded.aligned)
    monkeypatch.setattr(kernels, "np", guarded)
    for dim, before in zip(kernels.DIMS, expected, strict=True):
        assert [array.tobytes() for array in kernels.arrays_of(entry(dim))] == before
    assert guarded.intact()


def test_a_write_beyond_a_buffer_is_detected():
    guarded = Guarded()
    array = guarded.zeros((3, 5))
    assert guarded.intact()
    np.lib.stride_tricks.as_strided(array.ravel(), (16,))[15] = 1.0
    assert not guarded.intact()


# --- Entries --------------------------------------------------------------------------------------


def test_buffers_of_random_numbers_need_a_multiple_of_32_entries():
    number = np.uint32(1)
    for fill, kind in ((fill_normals, "f4"), (fill_uniforms, "f4"), (fill_words, "u4")):
        for lengths in ((33, 33), (64, 32), (31, 31)):
            first, second = (np.empty(length, kind) for length in lengths)
            with pytest.raises(ValueError, match="a multiple of 32"):
                fill(number, number, number, number, first, second)


def round_of(**changes):
    """Run a compiled step of three agents with five coordinates, with changed arguments."""
    x, first, unit_weights = np.zeros((3, 5), np.float32), np.zeros(1, int), np.ones((1, 3))
    arrays = {"x": x, "base": x, "sent": x, "gradients": x, "first": first}
    steps = steps_of(weights=[np.eye(3)], keep=unit_weights, scale=unit_weights, step=[1])
    arguments = {**arrays, "steps": steps, "noise": keys(kernels.KEY, 1)}
    return mix_and_step(**{**arguments, **changes})


SHORT, DOUBLE = np.zeros((3, 4), np.float32), np.zeros((3, 5))
TURNED = np.zeros((5, 3), np.float32).T


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": SHORT}, r"round.base: found \(3, 4\), expected an array of shape \(3, 5\)"),
        ({"sent": DOUBLE}, "round.sent: found 'float64, contiguous', expected a contiguous, "),
        ({"x": TURNED}, "round.x: found 'float32, not contiguous'"),
        ({"gradients": SHORT}, r"round.gradients: found \(3, 4\)"),
        ({"first": np.array([1])}, "round.first: found 1, expected an index from 0 to 0"),
        ({"first": np.array([-1])}, "round.first: found -1, expected an index from 0 to 0"),
        ({"first": np.zeros(2, int)}, r"round.first: found \(2,\)"),
    ],
)
def test_a_round_refuses_invalid_arrays_and_indices(changes, message):
    with pytest.raises(InvalidInput, match=message):
        round_of(**changes)


def test_a_gradient_step_refuses_arrays_of_wrong_shapes():
    x, short, unit_weights = SHORT.copy(), np.zeros((2, 4), np.float32), np.ones(3)
    with pytest.raises(InvalidInput, match=r"descend.mixed: found \(2, 4\)"):
        descend(x, x, short, x, unit_weights, 0.1, unit_weights, kernels.KEY, 1)
    with pytest.raises(InvalidInput, match=r"descend.key: found \(1,\)"):
        descend(x, x, x, x, unit_weights, 0.1, unit_weights, kernels.KEY[:1], 1)


def test_vectors_need_contiguous_arrays():
    @compiling.compiled
    def read(a):
        vectors.store(a, 0, vectors.load(a, 0))

    with pytest.raises(Exception, match="contiguous"):
        read(np.zeros(64)[::2])


def test_results_for_a_generic_processor_agree_within_rounding():
    """The command `compare` allows a relative difference of 1e-6."""
    entries = (kernels.small_sigmoid_sums,)
    names = [entry.__name__ for entry in entries]
    program = f"""
import json, kernels
entries = [getattr(kernels, name) for name in {names}]
print(json.dumps([[part.tolist() for part in kernels.arrays_of(entry(17))] for entry in entries]))
"""
    done = in_process(program, NUMBA_CPU_NAME="generic")
    assert done.returncode == 0, done.stderr[-2000:]
    for entry, arrays in zip(entries, json.loads(done.stdout), strict=True):
        for native_array, generic_array in zip(kernels.arrays_of(entry(17)), arrays, strict=True):
            assert (
                np.abs(native_array - generic_array).max() <= ROUNDING * np.abs(native_array).max()
            )


def test_a_run_with_numba_disabled_ends_with_a_one_line_error():
    call = "from private_consensus.cli import main; raise SystemExit(main({}))"
    done = in_process(call.format(["run", "pp_admm"]), NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    expected = "NUMBA_DISABLE_JIT: found 1, expected 0 or unset: compiled code is required"
    assert done.stderr == f"private-consensus: {expected}\n"
