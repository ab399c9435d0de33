r"""Standard normal numbers as a function of a key and a counter.

Threefry-2x32 with 13 rounds maps a 64-bit key and a 64-bit counter to two 32-bit words (Salmon,
Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The Box-Muller
transform maps the words to two normals:

.. math:: (n_1, n_2) = \sqrt{-2\ln u}\,(\cos\theta, \sin\theta), \qquad
          u = \frac{\lfloor w_1/2\rfloor + 1/2}{2^{31}}, \quad \theta = \pi\,\frac{w_2}{2^{31}}

with :math:`w_2` interpreted as a signed integer. Each number is a function of its key and counter
alone, so that numbers can be computed in any order and by any thread. The compiled version uses
float32 and polynomials for logarithm, sine and cosine. The reference uses float64 and the functions
of NumPy, and takes 30 times as long; NumPy's sequential generator of float32 takes 13 times as
long.
"""

import numpy as np

from .compiling import inlined, uncounted

ROUNDS = 13
ROTATIONS = tuple(np.uint32(r) for r in (13, 15, 26, 6, 17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)

_ONE, _WORD = np.uint32(1), np.uint32(32)
_MANTISSA, _EXPONENT = np.int32(0x3F3504F3), np.int32(23)  # sqrt(1/2), where mantissas begin
_ZERO, _UNIT, _MINUS_TWO, _DOUBLE = (np.float32(v) for v in (0.0, 1.0, -2.0, 2.0))
_STEP, _FIRST, _LN2 = np.float32(2.0**-31), np.float32(2.0**-32), np.float32(np.log(2.0))
_EIGHT, _TO_UNIT = np.uint32(8), np.float32(2.0**-24)
_HALF_TURN = np.float32(np.pi * 2.0**-32)


def polynomial(function, degree: int, low: float, high: float) -> tuple[float, ...]:
    """Interpolate a function at Chebyshev points, which is close to the best approximation."""
    points = low + (high - low) * (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2
    fit = np.polynomial.Chebyshev.fit(points, function(points), degree, domain=[low, high])
    return tuple(fit.convert(kind=np.polynomial.Polynomial).coef)


# Sine and cosine of x up to pi / 2 as functions of x^2, and the logarithm of 1 + f near f = 0.
_SQUARE, _LOW, _HIGH = (np.pi / 2) ** 2, np.sqrt(0.5) - 1.0, np.sqrt(2.0) - 1.0
_S0, _S1, _S2, _S3, _S4 = map(
    np.float32, polynomial(lambda z: np.sinc(np.sqrt(z) / np.pi), 4, 0.0, _SQUARE)
)
_C0, _C1, _C2, _C3, _C4, _C5 = map(
    np.float32, polynomial(lambda z: np.cos(np.sqrt(z)), 5, 0.0, _SQUARE)
)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = map(
    np.float32, polynomial(lambda f: (np.log1p(f) - f) / f**2, 7, _LOW, _HIGH)
)


# --- Compiled -------------------------------------------------------------------------------------


def _threefry(k0, k1, x, y):
    key = (k0, k1, np.uint32(PARITY ^ k0 ^ k1))
    # Sums of 32-bit integers have 64 bits in numba; the conversions keep vectors of 32-bit numbers.
    x, y = np.uint32(x + k0), np.uint32(y + k1)
    for i in range(ROUNDS):
        rotation = ROTATIONS[i % 8]
        x = np.uint32(x + y)
        y = np.uint32(((y << rotation) | (y >> np.uint32(_WORD - rotation))) ^ x)
        if i % 4 == 3:
            j = i // 4 + 1
            x, y = np.uint32(x + key[j % 3]), np.uint32(y + key[(j + 1) % 3] + np.uint32(j))
    return x, y


threefry_words = inlined(_threefry)
"""Compiled function that computes two words from a key (k0, k1) and a counter (x, y)."""


@inlined
def _radius(word):
    r"""Compute the Box-Muller radius :math:`\sqrt{-2\ln u}` of a random word."""
    # Signed integers are converted to floats in one instruction. Small uniforms, which determine
    # the tails of the distribution, are represented precisely.
    uniform = np.float32(np.int32(word >> _ONE)) * _STEP + _FIRST
    bits = np.float32(uniform).view(np.int32)
    exponent = np.int32(np.int32(bits - _MANTISSA) >> _EXPONENT)
    f = np.int32(bits - np.int32(exponent << _EXPONENT)).view(np.float32) - _UNIT
    p = f * _L7 + _L6
    p = p * f + _L5
    p = p * f + _L4
    p = p * f + _L3
    p = p * f + _L2
    p = p * f + _L1
    p = p * f + _L0
    logarithm = np.float32(exponent) * _LN2 + (p * f * f + f)
    return np.sqrt(max(logarithm * _MINUS_TWO, _ZERO))


@inlined
def _half_angle(word):
    """Compute the sine and cosine of pi/2 times the integer ``word``, scaled to [-1, 1)."""
    a = np.float32(np.int32(word)) * _HALF_TURN
    z = a * a
    sine = ((((z * _S4 + _S3) * z + _S2) * z + _S1) * z + _S0) * a
    cosine = ((((z * _C5 + _C4) * z + _C3) * z + _C2) * z + _C1) * z + _C0
    return sine, cosine


@uncounted
def fill_words(k0, k1, x, start, first, second):
    """Compute pairs ``first[i], second[i]`` of words of counters (``x``, ``start + i``).

    The key is (k0, k1). ``first`` and ``second`` are overwritten.
    """
    for i in range(first.size):
        first[i], second[i] = threefry_words(k0, k1, x, np.uint32(start + np.uint32(i)))


@uncounted
def fill_normals(k0, k1, x, start, first, second):
    """Compute pairs of normals, in float32, of the counters of :func:`fill_words`."""
    for i in range(first.size):
        radius_word, angle_word = threefry_words(k0, k1, x, np.uint32(start + np.uint32(i)))
        radius = _radius(radius_word)
        sine, cosine = _half_angle(angle_word)
        first[i] = radius * (_UNIT - sine * sine * _DOUBLE)
        second[i] = radius * (sine * cosine * _DOUBLE)


@uncounted
def fill_uniforms(k0, k1, x, start, first, second):
    """Compute pairs of uniforms in [0, 1) with 24 bits, of the counters of :func:`fill_words`."""
    for i in range(first.size):
        first_word, second_word = threefry_words(k0, k1, x, np.uint32(start + np.uint32(i)))
        first[i] = np.float32(np.int32(first_word >> _EIGHT)) * _TO_UNIT
        second[i] = np.float32(np.int32(second_word >> _EIGHT)) * _TO_UNIT


# --- Reference ------------------------------------------------------------------------------------


def threefry(keys: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute two words from keys, [..., 2], and counters (x, y), broadcast together."""
    return _threefry(np.uint32(keys[..., 0]), np.uint32(keys[..., 1]), x, y)


def normals(keys: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute pairs of standard normals in float64, one pair per key and counter (x, y)."""
    first, second = threefry(keys, x, y)
    radius = np.sqrt(-2.0 * np.log(((first >> np.uint32(1)) + 0.5) / 2.0**31))
    angle = np.pi * second.view(np.int32) / 2.0**31
    return radius * np.cos(angle), radius * np.sin(angle)
