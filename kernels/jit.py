"""The only place with compile flags: the ``jit`` decorator, template instantiation and two bit-level intrinsics.

No flag here lets the compiler reorder or contract floating-point operations, so a compiled function gives the same
bits on every x86-64-v3 (or newer) and aarch64 processor. Fused multiply-adds are written out with :func:`fma`.

The disk cache lies in a folder named after a hash of the sources that end up in compiled code: numba does not notice
when a function called from another file changes, and this does.
"""

import hashlib
import os
import types as python_types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

DISABLED = bool(numba.config.DISABLE_JIT)
"""True under ``NUMBA_DISABLE_JIT=1``: every kernel then is plain Python (equal to tolerance, not to the bit)."""


def source_hash() -> str:
    """Return a hash of all sources of kernels, potentials and samplers and of the compiler's versions."""
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    here = Path(__file__).resolve().parent
    package = Path(__import__("fald_hpc").__file__).resolve().parent
    for folder in (here, package / "potentials", package / "samplers"):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of the compiled functions: under ``NUMBA_CACHE_DIR``, else under the user's cache folder."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    if base is None:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fald_hpc", "numba")
    return Path(base) / source_hash()


_CACHE = str(cache_folder())


def jit(
    function: Callable[..., Any] | None = None,
    *,
    cache: bool = True,
    forceinline: bool = False,
    allocates: bool = False,
    internal: bool = False,
    **options: Any,
) -> Any:
    """Compile a function for native code: cached on disk, the interpreter lock released, IEEE semantics.

    Parameters
    ----------
    function : callable, optional
        The function; without it a decorator is returned.
    cache : bool
        Keep the machine code on disk. False for functions built at run time around a user's function.
    forceinline : bool
        Make it part of its callers: for the innermost functions, which else keep a loop from being vectorised, and for
        those that take whole records, whose every field a call copies.
    allocates : bool
        True if it makes arrays (``numpy.empty``; without, an allocation fails to compile). Where False, numba counts no
        references: the counts of a record's twenty arrays would cost more than a short event.
    internal : bool
        True if only compiled code calls it: no form for Python is then made, which for a function that takes records
        compiles longer than the function itself.
    **options
        Further options of :func:`numba.njit`.
    """
    if function is None:
        return lambda f: jit(f, cache=cache, forceinline=forceinline, allocates=allocates, internal=internal, **options)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE
    # numba lets a function inherit what its first caller has set: all are given here, so that none depends on that
    options |= {"forceinline": forceinline, "_nrt": allocates, "no_cfunc_wrapper": not allocates, "no_cpython_wrapper": internal}
    try:
        compiled = numba.njit(cache=cache, nogil=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = before
    return compiled if DISABLED else _blind_to_constants(compiled)


def _blind_to_constants(compiled: Any) -> Any:
    """Let a call with a constant argument use the function compiled for any number.

    numba compiles a function, and all that it calls, once more for each constant that it is called with; inlining brings
    the constant to where it matters all the same.
    """
    template = compiled.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(tuple(types.unliteral(a) for a in args), {name: types.unliteral(a) for name, a in kws.items()})

    compiled.get_call_template = get_call_template
    return compiled


def instantiate(
    template: Callable[..., Any],
    label: str,
    *,
    cache: bool = True,
    forceinline: bool = False,
    internal: bool = False,
    merge: bool = False,
    **functions: Any,
) -> Any:
    """Compile a template with some of its global names bound to given functions.

    A template is an ordinary function that calls placeholders (:func:`placeholder`) of its own module. This is what
    C++ would call instantiating it: the calls are direct and inlined, and, unlike a closure or a function passed as an
    argument, the result can be cached on disk.

    Parameters
    ----------
    template : callable
        A plain Python function.
    label : str
        Distinguishes the instances of one template in the disk cache; must be unique.
    cache : bool
        False when one of the functions is a user's, whose later changes the cache could not notice.
    forceinline : bool
        Make the instance part of its callers: worth it where it takes whole records, whose every field a call copies.
    internal : bool
        As in :func:`jit`.
    merge : bool
        Put the instance's statements into its callers before anything is compiled: for outer functions, which are called at
        one place and would else be compiled on their own and then once more as part of each function around them.
    **functions
        The functions to bind, by placeholder name.
    """
    unknown = set(functions) - set(template.__code__.co_names)
    if unknown:
        raise TypeError(f"template {template.__name__} does not call {sorted(unknown)}")
    bound = python_types.FunctionType(
        template.__code__, {**template.__globals__, **functions}, template.__name__, template.__defaults__
    )
    bound.__module__ = template.__module__
    bound.__qualname__ = f"{template.__qualname__}_{label}"
    bound.__doc__ = template.__doc__
    if merge and not DISABLED:
        return jit(bound, cache=cache, internal=internal, inline="always")
    return jit(bound, cache=cache, forceinline=forceinline, internal=internal)


@jit(forceinline=True)
def yes():
    """Return True: for placeholders that choose between two ways of a template."""
    return True


@jit(forceinline=True)
def no():
    """Return False."""
    return False


def compile_for(function: Any, signature: tuple[Any, ...]) -> None:
    """Compile a function for given types and for no others: arguments are then converted to them.

    Needed where an argument holds a function: numba would infer a type of its own for each function, compile anew and
    miss the disk cache, while a function *pointer* type serves all of them.
    """
    if DISABLED:
        return
    function.disable_compile(False)
    function.compile(signature)
    function.disable_compile()


def placeholder(name: str) -> Callable[..., Any]:
    """Return a function that stands for one that :func:`instantiate` will bind."""

    def unbound(*arguments: Any) -> Any:
        raise NotImplementedError(f"{name} is a placeholder of a template: instantiate() binds it")

    return unbound


if DISABLED:
    from fald_hpc.kernels.uncompiled import bits, flatten, fma, from_bits, stack, swap_halves, wide_vectors
else:

    @intrinsic(prefer_literal=True)
    def stack(typing_context: Any, like: Any, size: Any) -> Any:
        """Return an uninitialised array of a constant size that lives until the calling function returns.

        It costs nothing, where ``numpy.empty`` takes an allocation and reference counts.
        """
        array = types.Array(like.dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            item = context.get_data_type(like.dtype)
            length = size.literal_value
            with builder.goto_entry_block():
                data = builder.alloca(item, length)
            result = make_array(array)(context, builder)
            width = context.get_abi_sizeof(item)
            integers = [context.get_constant(types.intp, n) for n in (length, width, width)]
            populate_array(result, data, [integers[0]], [integers[1]], integers[2], None)
            return result._getvalue()

        return array(like, size), generate

    @intrinsic
    def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        """Return a·b + c with one rounding."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fma(*arguments)

        return types.float64(types.float64, types.float64, types.float64), generate

    @intrinsic
    def swap_halves(typing_context: Any, u: Any) -> Any:
        """Return a word with its upper and lower 32 bits exchanged."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = context.get_value_type(types.uint64)
            # written as two shifts, the compiler would turn one into a slow multiplication where u is a product
            rotate = builder.module.declare_intrinsic("llvm.fshl", [word], ir.FunctionType(word, [word] * 3))
            return builder.call(rotate, [arguments[0], arguments[0], word(32)])

        return types.uint64(types.uint64), generate

    @intrinsic
    def flatten(typing_context: Any, array: Any) -> Any:
        """Return a C-contiguous array as a vector, without a copy (and without the allocation behind ``ravel``)."""
        if array.layout != "C":
            return None
        vector = types.Array(array.dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source = make_array(array)(context, builder, arguments[0])
            result = make_array(vector)(context, builder)
            populate_array(result, source.data, [source.nitems], [source.itemsize], source.itemsize, None)
            return result._getvalue()

        return vector(array), generate

    @intrinsic
    def wide_vectors(typing_context: Any) -> Any:
        """Let the loops of the calling function use vectors of 512 bits where the processor has them.

        LLVM prefers 256 bits on many processors; integer multiplications and shifts gain from the longer ones.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # past llvmlite's list of attributes without a value
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
            return context.get_dummy_value()

        return types.void(), generate

    @intrinsic
    def bits(typing_context: Any, x: Any) -> Any:
        """Return the bit pattern of a double as uint64."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

        return types.uint64(types.float64), generate

    @intrinsic
    def from_bits(typing_context: Any, u: Any) -> Any:
        """Return the double with a bit pattern given as uint64."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(types.float64))

        return types.float64(types.uint64), generate
