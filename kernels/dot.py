"""Dot products of four rows with one vector at once.

A row's product is summed in eight partial sums (every eighth term, the last d mod 8 terms all in the first) that are
joined in a fixed order, so its bits do not depend on the rows beside it. Written with vectors of the compiler's own,
since it does not find them in a loop over partial sums; four rows at once hide the latency of the additions and read the
vector once.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fald_hpc.kernels.jit import DISABLED, fma

ROWS = 4
PARTIAL_SUMS = 8


def _one(row: np.ndarray, x: np.ndarray) -> float:
    sums = [0.0] * PARTIAL_SUMS
    whole = x.size - x.size % PARTIAL_SUMS
    for j in range(x.size):
        part = j % PARTIAL_SUMS if j < whole else 0
        sums[part] = fma(row[j], x[j], sums[part])
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


if DISABLED:

    def dot_four(rows: np.ndarray, a: int, b: int, c: int, d: int, x: np.ndarray) -> tuple[float, ...]:
        """Return z_a·x, z_b·x, z_c·x and z_d·x."""
        return tuple(_one(rows[row], x) for row in (a, b, c, d))

else:

    @intrinsic
    def dot_four(typing_context: Any, rows: Any, a: Any, b: Any, c: Any, d: Any, x: Any) -> Any:
        """Return z_a·x, z_b·x, z_c·x and z_d·x for rows: float64[n, p] and x: float64[p], both C-contiguous."""
        if rows.layout != "C" or x.layout != "C":
            return None
        result = types.UniTuple(types.float64, ROWS)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            double, index = ir.DoubleType(), context.get_value_type(types.intp)
            vector = ir.VectorType(double, PARTIAL_SUMS)
            table = context.make_array(rows)(context, builder, arguments[0])
            point = context.make_array(x)(context, builder, arguments[5])
            length = builder.extract_value(point.shape, 0)
            starts = [
                builder.gep(table.data, [builder.mul(context.cast(builder, row, kind, types.intp), length)])
                for row, kind in zip(arguments[1:5], signature.args[1:5], strict=True)
            ]
            # llvmlite's own fused multiply-add takes no vectors
            fused = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{PARTIAL_SUMS}f64"
            )
            zero = ir.Constant(vector, [ir.Constant(double, 0.0)] * PARTIAL_SUMS)
            sums = [cgutils.alloca_once_value(builder, zero) for _ in range(ROWS)]
            for place in sums:
                builder.store(zero, place)

            def vector_at(start: Any, j: Any) -> Any:
                place = builder.bitcast(builder.gep(start, [j]), ir.PointerType(vector))
                return builder.load(place, align=8, typ=vector)

            rest = builder.and_(length, ir.Constant(index, PARTIAL_SUMS - 1))
            whole = builder.sub(length, rest)
            step = ir.Constant(index, PARTIAL_SUMS)
            with cgutils.for_range_slice(builder, ir.Constant(index, 0), whole, step, index) as (j, _):
                shared = vector_at(point.data, j)
                for start, place in zip(starts, sums, strict=True):
                    builder.store(builder.call(fused, [vector_at(start, j), shared, builder.load(place)]), place)
            totals = []
            firsts = []
            for place in sums:
                value = builder.load(place)
                parts = [builder.extract_element(value, ir.Constant(ir.IntType(32), i)) for i in range(PARTIAL_SUMS)]
                first = cgutils.alloca_once_value(builder, parts[0])
                builder.store(parts[0], first)
                firsts.append(first)
                totals.append(parts)
            with cgutils.for_range_slice(builder, whole, length, ir.Constant(index, 1), index) as (j, _):
                shared = builder.load(builder.gep(point.data, [j]))
                for start, first in zip(starts, firsts, strict=True):
                    value = builder.load(builder.gep(start, [j]))
                    builder.store(builder.fma(value, shared, builder.load(first)), first)
            out = []
            for first, (_, s1, s2, s3, s4, s5, s6, s7) in zip(firsts, totals, strict=True):
                even = builder.fadd(builder.fadd(builder.load(first), s4), builder.fadd(s2, s6))
                odd = builder.fadd(builder.fadd(s1, s5), builder.fadd(s3, s7))
                out.append(builder.fadd(even, odd))
            return context.make_tuple(builder, result, out)

        return result(rows, a, b, c, d, x), generate
