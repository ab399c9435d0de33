r"""Small problems side by side in the registers of the processor, a lane each.

An array in lanes holds coordinate k of problem l at place ``LANES * k + l``. What these functions
do to one lane depends on no other lane, to the last bit. They are written in vectors of the
compiler, which does not find loops of eight by itself; where registers are narrower, several serve.
"""

from __future__ import annotations

from .compiling import AVAILABLE

LANES = 8
"""Of float64; of float32 there are twice as many."""

if AVAILABLE:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    _DOUBLE, _FLOAT, _LONG, _WORD = ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(32)
    _VECTOR, _SINGLES = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_FLOAT, 2 * LANES)
    _ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
    _FLAGS = ("contract",)

    class _Code:
        """What the functions below have in common when they write machine code."""

        def __init__(self, context, builder, signature, arguments, kind=_VECTOR):
            self.context, self.builder = context, builder
            self.kinds, self.values = signature.args, arguments
            self.kind = kind
            self.zero = ir.Constant(kind, [0.0] * kind.count)

        def place(self, argument: int, index):
            array = self.context.make_array(self.kinds[argument])
            data = array(self.context, self.builder, self.values[argument]).data
            return self.builder.gep(data, [index])

        def number(self, argument: int, index):
            return self.builder.load(self.place(argument, index))

        def vector(self, argument: int, index):
            pointer = self.kind.as_pointer()
            place = self.builder.bitcast(self.place(argument, index), pointer)
            return self.builder.load(place, align=4)

        def store(self, value, argument: int, index) -> None:
            pointer = self.kind.as_pointer()
            place = self.builder.bitcast(self.place(argument, index), pointer)
            self.builder.store(value, place, align=4)

        def everywhere(self, number):
            none = ir.Constant(self.kind, ir.Undefined)
            first = self.builder.insert_element(none, number, ir.Constant(_WORD, 0))
            return self.picked(first, [0] * self.kind.count)

        def picked(self, vector, places):
            none = ir.Constant(vector.type, ir.Undefined)
            places = ir.Constant(ir.VectorType(_WORD, len(places)), places)
            return self.builder.shuffle_vector(vector, none, places)

        def total(self, vector):
            """Sum over the lanes, halves upon halves."""
            count = self.kind.count
            while count > 1:
                count //= 2
                lower = self.picked(vector, list(range(count)))
                upper = self.picked(vector, list(range(count, 2 * count)))
                vector = self.builder.fadd(lower, upper)
            return self.builder.extract_element(vector, ir.Constant(_WORD, 0))

        def row(self, argument: int, begin, stride, k):
            """Vector k of those that begin ``stride`` apart."""
            return self.vector(argument, self.builder.add(begin, self.builder.mul(stride, k)))

        def fused(self, total, a, b):
            product = self.builder.fmul(a, b, flags=_FLAGS)
            return self.builder.fadd(total, product, flags=_FLAGS)

        def repeat(self, count, first, body):
            """``value = body(k, value)`` for k = 0, ..., count - 1, from ``first`` on."""
            before = self.builder.block
            loop = self.builder.append_basic_block("repeat")
            after = self.builder.append_basic_block("repeated")
            zero, one = ir.Constant(_LONG, 0), ir.Constant(_LONG, 1)
            self.builder.cbranch(self.builder.icmp_signed("<", zero, count), loop, after)
            self.builder.position_at_end(loop)
            k, value = self.builder.phi(_LONG), self.builder.phi(self.kind)
            result = body(k, value)
            following, end = self.builder.add(k, one), self.builder.block
            self.builder.cbranch(self.builder.icmp_signed("<", following, count), loop, after)
            for phi, begun, gone_on in ((k, zero, following), (value, first, result)):
                phi.add_incoming(begun, before)
                phi.add_incoming(gone_on, end)
            self.builder.position_at_end(after)
            last = self.builder.phi(self.kind)
            last.add_incoming(first, before)
            last.add_incoming(result, end)
            return last

    @intrinsic
    def dot_row(typing, out, at, x, columns, values, begin, count):
        """``out[at] = sum_k values[begin + k] * x[columns[begin + k]]``; columns count lanes."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            begin, count = arguments[5], arguments[6]

            def add(k, total):
                place = builder.add(begin, k)
                column = builder.zext(code.number(3, place), _LONG)
                value = code.everywhere(code.number(4, place))
                return code.fused(total, value, code.vector(2, column))

            code.store(code.repeat(count, _ZERO, add), 0, arguments[1])
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, long, x, columns, values, long, long), generate

    @intrinsic
    def add_row(typing, out, columns, values, begin, count, x, at):
        """``out[columns[begin + k]] += values[begin + k] * x[at]`` for k < count."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            vector = code.vector(5, arguments[6])

            def add(k, unused):
                place = builder.add(arguments[3], k)
                column = builder.zext(code.number(1, place), _LONG)
                value = code.everywhere(code.number(2, place))
                code.store(code.fused(code.vector(0, column), value, vector), 0, column)
                return unused

            code.repeat(arguments[4], _ZERO, add)
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, columns, values, long, long, x, long), generate

    @intrinsic
    def add_column(typing, out, values, begin, count, x, at):
        """``out[LANES * k] += values[begin + k] * x[at]`` for k < count."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            vector = code.vector(4, arguments[5])

            def add(k, unused):
                value = code.everywhere(code.number(1, builder.add(arguments[2], k)))
                place = builder.mul(k, ir.Constant(_LONG, LANES))
                code.store(code.fused(code.vector(0, place), value, vector), 0, place)
                return unused

            code.repeat(arguments[3], _ZERO, add)
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, values, long, long, x, long), generate

    @intrinsic
    def add_product(typing, out, i, a, j, b, k):
        """``out[i] += a[j] * b[k]``."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            product = code.vector(2, arguments[3]), code.vector(4, arguments[5])
            code.store(code.fused(code.vector(0, arguments[1]), *product), 0, arguments[1])
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, long, a, long, b, long), generate

    @intrinsic
    def choose(typing, out, i, which, a, j, b, k):
        """``out[i] = a[j]`` in lanes where ``which > 0``, ``b[k]`` in the others."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            chosen = builder.fcmp_ordered(">", code.vector(2, ir.Constant(_LONG, 0)), _ZERO)
            one, other = code.vector(3, arguments[4]), code.vector(5, arguments[6])
            code.store(builder.select(chosen, one, other), 0, arguments[1])
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, long, which, a, long, b, long), generate

    # Of float32.

    @intrinsic
    def add_weighted(typing, out, at, rows, begin, stride, count, weights):
        """``out[at] += sum_k weights[k] * rows[begin + k * stride]``, for k < count."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments, _SINGLES)
            begin, stride, count = arguments[3:6]

            def add(k, total):
                weight = code.everywhere(code.number(6, k))
                return code.fused(total, weight, code.row(2, begin, stride, k))

            code.store(code.repeat(count, code.vector(0, arguments[1]), add), 0, arguments[1])
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, long, rows, long, long, long, weights), generate

    @intrinsic
    def inner(typing, a, i, b, j, count):
        """``sum a[i + k] * b[j + k]`` over ``count`` vectors."""

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments, _SINGLES)
            width = ir.Constant(_LONG, _SINGLES.count)

            def add(k, total):
                a = code.row(0, arguments[1], width, k)
                return code.fused(total, a, code.row(2, arguments[3], width, k))

            return code.total(code.repeat(arguments[4], code.zero, add))

        long = types.int64
        return types.float32(a, long, b, long, long), generate

    @intrinsic
    def add_changes(typing, out, at, slopes, weight, points, changes, begin, stride, count, shifts):
        r"""``out[at] += sum_k m slopes[k] + weight (|x + m| - |x|)`` for k < count.

        m is ``changes[begin + k * stride]`` and x is ``points[...] + shifts[k]``, cut at plus and
        minus \|m|: :math:`|x+m|-|x| = |m| + 2\max\{\min\{sx, 0\}, -|m|\}`, s the sign of m.
        """

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments, _SINGLES)
            begin, stride, count = arguments[6:9]
            weight, two = (
                code.everywhere(arguments[3]),
                ir.Constant(_SINGLES, [2.0] * _SINGLES.count),
            )
            bits = ir.VectorType(_WORD, _SINGLES.count)
            sign = ir.Constant(bits, [-(2**31)] * _SINGLES.count)
            rest = ir.Constant(bits, [2**31 - 1] * _SINGLES.count)

            def least(a, b, order):
                return builder.select(builder.fcmp_ordered(order, a, b), a, b)

            def add(k, total):
                change = code.row(5, begin, stride, k)
                shift = code.everywhere(code.number(9, k))
                point = builder.fadd(code.row(4, begin, stride, k), shift)
                words = builder.bitcast(change, bits)
                turned = builder.xor(builder.bitcast(point, bits), builder.and_(words, sign))
                turned = builder.bitcast(turned, _SINGLES)
                size = builder.bitcast(builder.and_(words, rest), _SINGLES)
                least_turned = least(turned, code.zero, "<")
                cut = least(least_turned, builder.fneg(size), ">")
                kink = code.fused(size, two, cut)
                total = code.fused(total, code.everywhere(code.number(2, k)), change)
                return code.fused(total, weight, kink)

            code.store(code.repeat(count, code.vector(0, arguments[1]), add), 0, arguments[1])
            return context.get_dummy_value()

        long, single = types.int64, types.float32
        signature = types.void(out, long, slopes, single, points, changes, long, long, long, shifts)
        return signature, generate

    # Bits.

    @intrinsic
    def double_bits(typing, value):
        """The bits of a float64 as an int64."""

        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], _LONG)

        return types.int64(types.float64), generate

    @intrinsic
    def bits_double(typing, value):
        """The float64 of given bits."""

        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], _DOUBLE)

        return types.float64(types.int64), generate
else:
    dot_row = add_row = add_column = add_product = choose = double_bits = bits_double = None
    add_weighted = inner = add_changes = None
