"""Two loops over a fixed number of float32, written as vector instructions.

In plain numba the compiler cannot know that arrays do not overlap, so it checks that at run time, and for 8
to 128 numbers the check costs as much as the sums: an encoding takes twice as long. Here a sum stays in a
register until it is done, and the order of operations is spelled out: nothing is fused.
Offsets count numbers from the start of a C-contiguous array; nothing checks them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

FLOAT = ir.FloatType()


def make_product(depth: int, width: int) -> Any:
    """A function: out[out_at :][:width] = hidden[:depth] @ the matrix that begins at matrix[matrix_at].

    Its rows are `stride` numbers apart.
    """
    lanes = min(width, 16)

    @intrinsic
    def product(
        _: Any, out: Any, _out_at: Any, hidden: Any, matrix: Any, _matrix_at: Any, _stride: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _data(context, builder, signature, args)
            target, row = builder.gep(data[0], [args[1]]), builder.gep(data[3], [args[4]])
            totals: list[Any] = [None] * (width // lanes)
            for c in range(0, depth, 4):
                factors, rows = [], []
                for k in range(4):
                    factors.append(_splat(builder, _load(builder, data[2], c + k, 1), lanes))
                    rows.append(row)
                    row = builder.gep(row, [args[5]])
                for n, total in enumerate(totals):
                    weights = [_load(builder, r, n * lanes, lanes) for r in rows]
                    terms = [builder.fmul(f, w) for f, w in zip(factors, weights, strict=True)]
                    part = _sum_of_four(builder, terms)
                    totals[n] = part if total is None else builder.fadd(total, part)
            for n, total in enumerate(totals):
                _store(builder, total, target, n * lanes, lanes)
            return context.get_dummy_value()

        return types.void(out, types.intp, hidden, matrix, types.intp, types.intp), generate

    return product


def make_add_four(lanes: int) -> Any:
    """A function: hidden[at :][:lanes] += the sum of four stretches of `table`, beginning at a, b, c, d."""

    @intrinsic
    def add_four(_: Any, hidden: Any, _at: Any, table: Any, _a: Any, _b: Any, _c: Any, _d: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _data(context, builder, signature, args)
            target = builder.gep(data[0], [args[1]])
            terms = [_load(builder, builder.gep(data[2], [at]), 0, lanes) for at in args[3:]]
            total = builder.fadd(_load(builder, target, 0, lanes), _sum_of_four(builder, terms))
            _store(builder, total, target, 0, lanes)
            return context.get_dummy_value()

        return types.void(hidden, types.intp, table, *[types.intp] * 4), generate

    return add_four


def _data(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """Pointers to the numbers of those arguments that are arrays."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else None
        for kind, value in zip(signature.args, args, strict=True)
    ]


def _pointer(builder: Any, data: Any, at: int, lanes: int) -> Any:
    pointer = builder.gep(data, [ir.Constant(ir.IntType(64), at)])
    return pointer if lanes == 1 else builder.bitcast(pointer, ir.VectorType(FLOAT, lanes).as_pointer())


def _load(builder: Any, data: Any, at: int, lanes: int) -> Any:
    return builder.load(_pointer(builder, data, at, lanes), align=4)


def _store(builder: Any, value: Any, data: Any, at: int, lanes: int) -> None:
    builder.store(value, _pointer(builder, data, at, lanes), align=4)


def _splat(builder: Any, scalar: Any, lanes: int) -> Any:
    empty = ir.Constant(ir.VectorType(FLOAT, lanes), ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def _sum_of_four(builder: Any, terms: list[Any]) -> Any:
    return builder.fadd(builder.fadd(terms[0], terms[1]), builder.fadd(terms[2], terms[3]))
