"""SIMD vectors as values in compiled loops, with the operators of numbers.

A compiler vectorises loops only if it can prove that arrays do not overlap, and not always with the
full width of the processor. With explicit vectors, sums stay in registers, and the result in a lane
and its rounding do not depend on other lanes. Plain loops make :mod:`.logistic` six times and
:mod:`.backpropagation` five times as slow.

A vector has 512 bits: 8 numbers of 64 bits or 16 numbers of 32 bits. On processors with shorter
registers, it uses several registers. ``+ - * /`` apply to each lane, as ``+`` and ``<<`` do for
integers. A number as an operand is broadcast to all lanes. A product that is added immediately is
rounded once, if the processor supports it.
"""

import math
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

from .compiling import inlined

DOUBLE_LANES, LANES = 8, 16
"""Number of lanes of types of 64 bits and of 32 bits."""


def intrinsic(function: Callable) -> Callable[..., Any]:
    """Decorate a function that generates code; calls omit its typing context."""
    return extending.intrinsic(function)


def aligned(count: int, kind=np.float32) -> np.ndarray:
    """Allocate zeros, [count], aligned to 64 bytes, so that no vector crosses a cache line."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count * size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + count * size].view(kind)


def allocate(kind: Any, shapes, lengths, dtype: Callable[[str], type]) -> Any:
    """Allocate the flat arrays of a named tuple.

    ``shapes`` has the names of the arrays by their axes, ``lengths`` the length of each axis, and
    ``dtype`` returns the type of an array by its name.
    """
    sizes = {
        name: math.prod(lengths[axis] for axis in axes)
        for axes, names in shapes.items()
        for name in names.split()
    }
    return kind(*(aligned(sizes[name], dtype(name)) for name in kind._fields))


class Vector(types.Type):
    """Numba type of a vector."""

    def __init__(self, element):
        self.element, self.lanes = element, 512 // element.bitwidth
        super().__init__(f"vector({element})")

    def can_convert_from(self, typingctx, other):
        """Return the kind of conversion from another type; numbers can be broadcast."""
        return Conversion.unsafe if isinstance(other, types.Number) else None


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


def _operator(symbol, instruction, elements, operands=2, flags=()):
    def lowered(context, builder, sig, args):
        return getattr(builder, instruction)(*args, flags=flags)

    for element in elements:
        lower_builtin(symbol, *[Vector(element)] * operands)(lowered)


_FLOATS, _INTEGERS = (types.float64, types.float32), (types.int64, types.int32)
for _symbol in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lshift):
    infer_global(_symbol)(type(f"_{_symbol.__name__}", (_Operator,), {}))
infer_global(operator.neg)(type("_neg", (_Operator,), {}))
_operator(operator.add, "fadd", _FLOATS, flags=("contract",))
_operator(operator.sub, "fsub", _FLOATS, flags=("contract",))
_operator(operator.mul, "fmul", _FLOATS, flags=("contract",))
_operator(operator.truediv, "fdiv", _FLOATS)
_operator(operator.neg, "fneg", _FLOATS, operands=1)
_operator(operator.add, "add", _INTEGERS)
_operator(operator.lshift, "shl", _INTEGERS)

# --- Memory -----------------------------------------------------------------------------------


def _place(context, builder, kind, array, index, vector):
    data = context.make_array(kind)(context, builder, array).data
    address = builder.gep(data, [index])
    return builder.bitcast(address, context.get_value_type(vector).as_pointer())


def _require_contiguous(array):
    if array.layout != "C":
        raise TypingError("vectors are loaded from and stored to contiguous arrays only")


@intrinsic
def load(typing, array, index):
    """Load the numbers from ``array[index]`` on, of a contiguous array."""
    _require_contiguous(array)

    def generate(context, builder, sig, args):
        address = _place(context, builder, sig.args[0], *args, sig.return_type)
        return builder.load(address, align=4)

    return Vector(array.dtype)(array, types.int64), generate


@intrinsic
def store(typing, array, index, vector):
    """Store the vector to ``array[index]`` and the following entries."""
    _require_contiguous(array)

    def generate(context, builder, sig, args):
        address = _place(context, builder, sig.args[0], *args[:2], sig.args[2])
        builder.store(args[2], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), generate


@inlined
def load_everywhere(array, index):
    """Load ``array[index]`` into all lanes; negative indices are not supported."""
    return everywhere(array[np.uint64(index)])


@intrinsic
def store_first(typing, array, index, count, vector):
    """Store the first ``count`` lanes to ``array[index]`` and following entries."""

    def generate(context, builder, sig, args):
        array, index, count, vector = args
        lanes = ir.Constant(ir.VectorType(ir.IntType(64), LANES), list(range(LANES)))
        mask = builder.icmp_signed("<", lanes, _spread(builder, count, LANES))
        address = _place(context, builder, sig.args[0], array, index, sig.args[3])
        align = ir.Constant(ir.IntType(32), 4)
        kinds = [vector.type, address.type, align.type, mask.type]
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), kinds),
            f"llvm.masked.store.v{LANES}f32.p0",
        )
        builder.call(function, [vector, address, align, mask])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), generate


# --- Functions --------------------------------------------------------------------------------


def _emitted(emit):
    """Return the code generator of a function of the builder, the resulting type and the values."""
    return lambda context, builder, sig, args: emit(
        builder, context.get_value_type(sig.return_type), *args
    )


@intrinsic
def everywhere(typing, number):
    """Broadcast the number to all lanes."""
    kind = Vector(number)
    return kind(kind), lambda context, builder, sig, args: args[0]


@intrinsic
def where_greater(typing, a, b, c, d):
    """Return c in lanes with ``a > b``, else d."""
    kind = _common((a, b, c, d))

    def emit(builder, kind, a, b, c, d):
        return builder.select(builder.fcmp_ordered(">", a, b), c, d)

    return kind(kind, kind, kind, kind), _emitted(emit)


@inlined
def minimum(a, b):
    """Return a in lanes with ``a < b``, else b."""
    return where_greater(b, a, a, b)


@inlined
def maximum(a, b):
    """Return a in lanes with ``a > b``, else b."""
    return where_greater(a, b, a, b)


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


def _view(element):
    @intrinsic
    def view(typing, a):
        """Reinterpret the bits as another type."""
        return Vector(element)(a), _emitted(lambda builder, t, a: builder.bitcast(a, t))

    return view


ints, longs = _view(types.int32), _view(types.int64)
singles, doubles = _view(types.float32), _view(types.float64)
