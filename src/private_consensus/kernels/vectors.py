"""SIMD vectors as values in compiled loops, with the operators of numbers.

A compiler vectorises loops only if it can prove that arrays do not overlap, and not always with the
full width of the processor. With explicit vectors, the result in a lane and its rounding do not
depend on other lanes. On processors with shorter registers, a vector uses several registers.

A register of 512 bits contains 8 numbers of 64 bits or 16 numbers of 32 bits. Vectors of 32 numbers
of 32 bits use two registers. They are faster in long chains of dependent operations.

``+ - *`` and, for integers, ``& | ^ << >>`` apply to each lane. A number as an operand is broadcast
to all lanes. A product that is added immediately is rounded once, if the processor supports it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, lower_cast, models, register_model

DOUBLE_LANES, LANES, WIDE = 8, 16, 32
"""Number of lanes: of float64, and of types of 32 bits in one register and in two registers."""


def intrinsic(function: Callable) -> Callable[..., Any]:
    """Decorate a function that generates code; calls omit its typing context."""
    return extending.intrinsic(function)


def aligned(count: int, kind=np.float32) -> np.ndarray:
    """Allocate zeros, [count], aligned to 64 bytes, so that no vector crosses a cache line."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count * size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + count * size].view(kind)


class Vector(types.Type):
    """Numba type of a vector."""

    def __init__(self, element, lanes: int):
        self.element, self.lanes = element, lanes
        super().__init__(f"vector({element}, {lanes})")

    def can_convert_from(self, typingctx, other):
        """Return the kind of conversion from another type; numbers can be broadcast."""
        return Conversion.unsafe if isinstance(other, types.Number) else None


def _kinds(element, *lanes):
    return tuple(Vector(element, count) for count in lanes)


_DOUBLES = _kinds(types.float64, DOUBLE_LANES)
_SINGLES = _kinds(types.float32, LANES, WIDE)
_SIGNED = _kinds(types.int64, DOUBLE_LANES) + _kinds(types.int32, LANES, WIDE)
_UNSIGNED = _kinds(types.uint32, LANES, WIDE)
_FUSED = ("contract",)


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        element = manager.lookup(kind.element).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, kind.lanes))


@lower_cast(types.Number, Vector)
def _everywhere(context, builder, kind, vector, number):
    number = context.cast(builder, number, kind, vector.element)
    return _spread(builder, number, vector.lanes)


def _spread(builder, number, lanes):
    none = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    return _picked(builder, first, [0] * lanes)


def _picked(builder, vector, indices):
    none = ir.Constant(vector.type, ir.Undefined)
    indices = ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), indices)
    return builder.shuffle_vector(vector, none, indices)


# --- Operators --------------------------------------------------------------------------------


def _common(args):
    """Return the vector type of operands of which one is a vector; None if there is none."""
    vectors = {arg for arg in args if isinstance(arg, Vector)}
    return vectors.pop() if len(vectors) == 1 else None


class _Operator(AbstractTemplate):
    def generic(self, args, kws):
        vector = _common(args)
        return vector and signature(vector, *[vector] * len(args))


def _operator(symbol, integer=None, floating=None, kinds=_SIGNED + _UNSIGNED, flags=_FUSED):
    infer_global(symbol)(type(f"_{symbol.__name__}", (_Operator,), {}))

    def lowered(name, **options):
        return lambda context, builder, sig, args: getattr(builder, name)(*args, **options)

    operands = 1 if symbol is operator.neg else 2
    if integer:
        for kind in kinds:
            lower_builtin(symbol, *[kind] * operands)(lowered(integer))
    if floating:
        for kind in _DOUBLES + _SINGLES:
            lower_builtin(symbol, *[kind] * operands)(lowered(floating, flags=flags))


_operator(operator.add, "add", "fadd")
_operator(operator.sub, "sub", "fsub")
_operator(operator.mul, "mul", "fmul")
_operator(operator.truediv, floating="fdiv", flags=())
_operator(operator.neg, "neg", "fneg", flags=())
_operator(operator.and_, "and_")
_operator(operator.or_, "or_")
_operator(operator.xor, "xor")
_operator(operator.lshift, "shl")
_operator(operator.rshift, "ashr", kinds=_SIGNED)
for _words in _UNSIGNED:
    lower_builtin(operator.rshift, _words, _words)(
        lambda context, builder, sig, args: builder.lshr(*args)
    )

# --- Memory -----------------------------------------------------------------------------------


def _place(context, builder, kind, array, index, vector):
    data = context.make_array(kind)(context, builder, array).data
    address = builder.gep(data, [index])
    return builder.bitcast(address, context.get_value_type(vector).as_pointer())


def _require_contiguous(array):
    if array.layout != "C":
        raise TypingError("vectors are loaded from and stored to contiguous arrays only")


def _loading(registers):
    @intrinsic
    def load(typing, array, index):
        """Load the numbers from ``array[index]`` on, of a contiguous array."""
        _require_contiguous(array)

        def generate(context, builder, sig, args):
            address = _place(context, builder, sig.args[0], *args, sig.return_type)
            return builder.load(address, align=4)

        return _kind(array.dtype, registers)(array, types.int64), generate

    return load


def _kind(element, registers):
    return Vector(element, registers * 512 // element.bitwidth)


load, load_wide = _loading(1), _loading(2)


@intrinsic
def store(typing, array, index, vector):
    """Store the vector to ``array[index]`` and the following entries."""
    _require_contiguous(array)

    def generate(context, builder, sig, args):
        address = _place(context, builder, sig.args[0], *args[:2], sig.args[2])
        builder.store(args[2], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), generate


def _first(builder, array, index, count, kind, argument, context):
    """Return the address and a mask of the lanes below ``count``."""
    lanes = ir.Constant(ir.VectorType(ir.IntType(64), LANES), list(range(LANES)))
    mask = builder.icmp_signed("<", lanes, _spread(builder, count, LANES))
    return _place(context, builder, argument, array, index, kind), mask


@intrinsic
def load_first(typing, array, index, count):
    """Load numbers from ``array[index]`` on into the first ``count`` lanes; other lanes are 0.

    No numbers beyond these are read.
    """
    vector = _SINGLES[0]

    def generate(context, builder, sig, args):
        address, mask = _first(builder, *args, vector, sig.args[0], context)
        kind = context.get_value_type(vector)
        align = ir.Constant(ir.IntType(32), 4)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(kind, [address.type, align.type, mask.type, kind]),
            f"llvm.masked.load.v{LANES}f32.p0",
        )
        return builder.call(function, [address, align, mask, ir.Constant(kind, [0.0] * LANES)])

    return vector(array, types.int64, types.int64), generate


@intrinsic
def load_everywhere(typing, array, index):
    """Load ``array[index]`` into all lanes; negative indices are not supported."""
    vector = _SINGLES[0]

    def generate(context, builder, sig, args):
        number = context.get_value_type(vector.element)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), number.as_pointer())
        return _spread(builder, builder.load(address), LANES)

    return vector(array, types.int64), generate


@intrinsic
def store_first(typing, array, index, count, vector):
    """Store the first ``count`` lanes to ``array[index]`` and following entries."""

    def generate(context, builder, sig, args):
        address, mask = _first(builder, *args[:3], vector, sig.args[0], context)
        kind = context.get_value_type(vector)
        align = ir.Constant(ir.IntType(32), 4)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [kind, address.type, align.type, mask.type]),
            f"llvm.masked.store.v{LANES}f32.p0",
        )
        builder.call(function, [args[3], address, align, mask])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), generate


# --- Functions --------------------------------------------------------------------------------


def _emitted(emit):
    """Return the code generator of a function of the builder, the resulting type and the values."""
    return lambda context, builder, sig, args: emit(
        builder, context.get_value_type(sig.return_type), *args
    )


def _spreading(registers):
    @intrinsic
    def everywhere(typing, number):
        """Broadcast the number to all lanes."""
        kind = _kind(number, registers)
        return kind(kind), lambda context, builder, sig, args: args[0]

    return everywhere


everywhere, everywhere_wide = _spreading(1), _spreading(2)


@intrinsic
def counted_from(typing, first):
    """Return the consecutive integers first, first + 1, ... in the lanes of two registers."""
    kind = _kind(first, 2)
    numbers = list(range(kind.lanes))
    return kind(kind), _emitted(lambda builder, t, a: builder.add(a, ir.Constant(t, numbers)))


@intrinsic
def narrowed(typing, lower, upper):
    """Convert two vectors of float64, ``lower`` and ``upper`` half, to one vector of float32."""
    both = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))
    return _SINGLES[0](lower, upper), _emitted(
        lambda builder, t, a, b: builder.fptrunc(builder.shuffle_vector(a, b, both), t)
    )


@intrinsic
def widened(typing, a):
    """Convert the lower and the upper half of a vector of float32 to float64."""

    def generate(context, builder, sig, args):
        kind = context.get_value_type(_DOUBLES[0])
        halves = list(range(DOUBLE_LANES)), list(range(DOUBLE_LANES, LANES))
        converted = [builder.fpext(_picked(builder, args[0], half), kind) for half in halves]
        return context.make_tuple(builder, sig.return_type, converted)

    return types.UniTuple(_DOUBLES[0], 2)(a), generate


def _select(order):
    return _emitted(
        lambda builder, t, a, b: builder.select(builder.fcmp_ordered(order, a, b), a, b)
    )


@intrinsic
def minimum(typing, a, b):
    """Return a in lanes with ``a < b``, else b."""
    kind = _common((a, b))
    return kind(kind, kind), _select("<")


@intrinsic
def maximum(typing, a, b):
    """Return a in lanes with ``a > b``, else b."""
    kind = _common((a, b))
    return kind(kind, kind), _select(">")


def _where(order):
    @intrinsic
    def where(typing, a, b, c, d):
        """Return c in lanes where the comparison of a and b holds, else d."""

        def emit(builder, kind, a, b, c, d):
            return builder.select(builder.fcmp_ordered(order, a, b), c, d)

        return c(a, a, c, c), _emitted(emit)

    return where


where_less, where_greater = _where("<"), _where(">")


@intrinsic
def root(typing, a):
    """Return the square roots."""

    def generate(context, builder, sig, args):
        kind = args[0].type
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(kind, [kind]),
            f"llvm.sqrt.v{kind.count}{kind.element.intrinsic_name}",
        )
        return builder.call(function, args)

    return a(a), generate


def _folding(join):
    @intrinsic
    def fold(typing, a):
        def generate(context, builder, sig, args):
            (vector,) = args
            while vector.type.count > 1:
                half = vector.type.count // 2
                lower, upper = list(range(half)), list(range(half, 2 * half))
                vector = join(
                    builder, _picked(builder, vector, lower), _picked(builder, vector, upper)
                )
            return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

        return a.element(a), generate

    return fold


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


total_of, largest_of = _folding(lambda builder, a, b: builder.fadd(a, b)), _folding(_larger)
"""Sum and maximum of the lanes of a vector, by joining halves until one number is left."""


@intrinsic
def lowest_bit(typing, word):
    """Return the index of the lowest set bit of a nonzero 64-bit word."""
    never_zero = ir.Constant(ir.IntType(1), 1)
    return types.int64(types.uint64), _emitted(lambda builder, t, a: builder.cttz(a, never_zero))


@intrinsic
def zeros_of(typing, a):
    """Return a 64-bit word whose lowest bits mark the lanes that are 0."""

    def generate(context, builder, sig, args):
        kind = args[0].type
        zero = builder.fcmp_ordered("==", args[0], ir.Constant(kind, [0.0] * kind.count))
        return builder.zext(builder.bitcast(zero, ir.IntType(kind.count)), ir.IntType(64))

    return types.uint64(a), generate


def _view(element):
    @intrinsic
    def view(typing, a):
        """Reinterpret the bits as another type."""
        return Vector(element, a.lanes)(a), _emitted(lambda builder, t, a: builder.bitcast(a, t))

    return view


words, ints, longs = _view(types.uint32), _view(types.int32), _view(types.int64)
singles, doubles = _view(types.float32), _view(types.float64)


@intrinsic
def floated(typing, a):
    """Convert integers to float32, with rounding."""
    return Vector(types.float32, a.lanes)(a), _emitted(lambda builder, t, a: builder.sitofp(a, t))
