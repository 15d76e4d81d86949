"""Rows that are read in random order, asked for one step ahead: memory then works while the processor does."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fald_hpc.kernels.aligned import LINE
from fald_hpc.kernels.jit import DISABLED, jit

MOST = 1 << 12
"""Bytes of half a minibatch up to which its rows are asked for: with halves of 6 kB, steps took 1.05 times as long as without."""

if DISABLED:

    def _ask(rows: np.ndarray, row: int) -> None:
        """Do nothing: there is no cache to speak to."""

else:

    @intrinsic
    def _ask(typing_context: Any, rows: Any, row: Any) -> Any:
        """Ask for all lines of the cache that hold a row of a C-contiguous float64[n, d]."""
        if rows.layout != "C":
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            index, byte = context.get_value_type(types.intp), ir.IntType(8)
            table = context.make_array(rows)(context, builder, arguments[0])
            length = builder.extract_value(table.shape, 1)
            number = context.cast(builder, arguments[1], row, types.intp)
            first = builder.bitcast(builder.gep(table.data, [builder.mul(number, length)]), ir.PointerType(byte))
            bytes_ = builder.mul(length, ir.Constant(index, 8))
            ask = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [ir.PointerType(byte), *[ir.IntType(32)] * 3]),
                "llvm.prefetch.p0i8",
            )
            # to be read, to the first-level cache, data
            kind = [ir.Constant(ir.IntType(32), n) for n in (0, 3, 1)]

            def at(offset: Any) -> None:
                builder.call(ask, [builder.gep(first, [offset]), *kind])

            with cgutils.for_range_slice(builder, ir.Constant(index, 0), bytes_, ir.Constant(index, LINE), index) as (offset, _):
                at(offset)
            at(builder.sub(bytes_, ir.Constant(index, 1)))
            return context.get_dummy_value()

        return types.void(rows, row), generate


@jit(internal=True)
def rows_ahead(table, first, rows):
    """Ask for rows ``first + rows[m]`` of a table: float64[n, d], if they are few; no result depends on it."""
    if 8 * table.shape[1] * rows.size <= MOST:
        for m in range(rows.size):
            _ask(table, first + rows[m])
