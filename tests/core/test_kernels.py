"""Test that compiled code reads and writes no memory outside of its arrays."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import kernels
import numpy as np
import pytest

from private_consensus.publishing.differences import ROUNDING

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


MODULES = ("backpropagation", "logistic", "messages", "rounds", "rows", "two_point", "vectors")


@pytest.mark.parametrize("entry", kernels.ENTRIES, ids=lambda entry: entry.__name__)
def test_kernels_do_not_change_the_guard_values_around_buffers(monkeypatch, entry):
    expected = [
        [array.tobytes() for array in kernels.arrays_of(entry(dim))] for dim in kernels.DIMS
    ]  # compiled, so that no kernel is compiled against the guarded arrays below
    guarded = Guarded()
    for name in MODULES:
        module = import_module(f"private_consensus.kernels.{name}")
        monkeypatch.setattr(module, "np", guarded)
        if hasattr(module, "aligned"):  # the module's own arrays are padded
            monkeypatch.setattr(module, "aligned", guarded.aligned)
    monkeypatch.setattr(kernels, "np", guarded)
    for dim, before in zip(kernels.DIMS, expected, strict=True):
        assert [array.tobytes() for array in kernels.arrays_of(entry(dim))] == before
    assert guarded.intact()


# --- Entries --------------------------------------------------------------------------------------


def test_results_for_a_generic_processor_agree_within_rounding():
    """The command `compare` allows a relative difference of 1e-6."""
    program = """
import json, kernels
print(json.dumps([part.tolist() for part in kernels.arrays_of(kernels.draws(17))]))
"""
    done = in_process(program, NUMBA_CPU_NAME="generic")
    assert done.returncode == 0, done.stderr[-2000:]
    generic_arrays = json.loads(done.stdout)
    for native, generic in zip(kernels.arrays_of(kernels.draws(17)), generic_arrays, strict=True):
        assert np.allclose(native, generic, rtol=0, atol=ROUNDING * np.abs(native).max())


def test_a_run_with_numba_disabled_ends_with_a_one_line_error():
    call = "from private_consensus.cli import main; raise SystemExit(main({}))"
    done = in_process(call.format(["run", "pp_admm"]), NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    expected = "NUMBA_DISABLE_JIT: found 1, expected 0 or unset: compiled code is required"
    assert done.stderr == f"private-consensus: {expected}\n"
