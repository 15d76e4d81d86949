"""What makes two runs the same run: settings, data and versions as named values, and the first that differs.

Ranks of one job are compared with it, and a run with its checkpoint. What is not here may change when a run is
resumed: steps, ranks and their grid, segments, the time limit, the cap on the draws, and where the results lie.
"""

import dataclasses
import hashlib
import json
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from fald_hpc import __version__
from fald_hpc.kernels import noise, state

if TYPE_CHECKING:
    from fald_hpc.study import Request


def settings(request: "Request") -> dict[str, Any]:
    """Return everything but the data, the steps and the burn-in that decides a run's numbers, by configuration key."""
    named: dict[str, Any] = {"target.potential": request.potential.name}
    named |= {f"target.{key}": value for key, value in fields(request.potential)}
    shares = request.clients.prior_shares
    named |= {
        "data.clients": f"{len(request.clients)} ({_hash(list(request.clients.ids))})",
        "data.prior_shares": "equal" if shares is None else _plain(np.asarray(shares)),
        "data.standardise": request.standardise,
        "sampler.name": request.sampler.name,
    }
    named |= {f"sampler.{key}": value for key, value in fields(request.sampler)}
    named |= {
        "sampler.schedule": "shared" if request.schedule.shared else "independent",
        "sampler.init": _plain(request.init if isinstance(request.init, str) else np.asarray(request.init, float)),
        "run.chains": request.chains,
        "run.seed": str(request.seed),
        "run.record": "every-step" if request.schedule.every_step else "communication",
        "version of fald_hpc": __version__,
        "version of numpy": np.__version__,
        "version of numba": numba.__version__,
        "version of the random numbers": noise.LAYOUT_VERSION,
        "version of the saved state": state.VERSION,
    }
    return named


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, Any, Any] | None:
    """Return (name, value before, value now) of the first difference, None where there is none."""
    for name in [*before, *(name for name in now if name not in before)]:
        if json.dumps(before.get(name)) != json.dumps(now.get(name)):
            return name, before.get(name), now.get(name)
    return None


def fields(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a potential or sampler as JSON."""
    for field in dataclasses.fields(record):
        yield field.name, _plain(getattr(record, field.name))


def _plain(value: Any) -> Any:
    """Return a value as JSON: arrays of more than a few numbers and functions as hashes."""
    if isinstance(value, np.ndarray):
        flat = np.ascontiguousarray(value, "<f8")
        return value.tolist() if value.size <= 8 else f"{list(value.shape)} numbers ({_hash(flat.tobytes().hex())})"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    if callable(value):
        function = getattr(value, "py_func", value)
        code = getattr(function, "__code__", None)
        name = getattr(function, "__qualname__", type(function).__name__)
        return f"{name} ({_hash([_code(code), _constants(function)])})" if code is not None else name
    return value


def _code(code: types.CodeType) -> list[Any]:
    """Return a function's code without what depends on the process: places, addresses."""
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _constants(function: types.FunctionType) -> list[str]:
    """Return the numbers and texts that a function takes from around it."""
    around = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    around |= {name: cell.cell_contents for name, cell in cells}
    return [f"{name}={value!r}" for name, value in around.items() if isinstance(value, (bool, int, float, str))]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
