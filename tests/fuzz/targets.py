"""What is fuzzed: for each parser a few valid files to start from, and a function that reads bytes as the program would.

A function returns whether the input was accepted. Anything that it raises is a finding, as is an answer that is late.
"""

import functools
import io
import json
import os
import signal
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from fald_hpc import checkpoint, condition, config, summary
from fald_hpc.cli import status
from fald_hpc.data import Clients, Partition
from fald_hpc.data.columns import Columns
from fald_hpc.data.readers import read_rows
from fald_hpc.errors import UserError
from fald_hpc.run import open_run

X = np.array([[1.5, -2.0], [0.1, 1e-300], [3.0, 1e300], [0.0, 4.0]])
Y = np.array([0.0, 1.0, 1.0, 0.0])
SECONDS = 10
"""Time for one input, after which it counts as a hang."""


@dataclass(frozen=True)
class Target:
    """A parser.

    Attributes
    ----------
    seeds : list of bytes
        Valid files.
    read : callable
        Reads a file with these bytes; raises UserError for what it does not take.
    words : list of bytes
        Pieces of the format, for mutations.
    """

    seeds: list[bytes]
    read: Callable[[Path], object]
    name: str
    words: list[bytes]


class Hang(BaseException):
    """An input that takes too long; no ordinary exception, which a parser might take for damage."""


def _late(number: int, frame: FrameType | None) -> None:
    raise Hang(f"still busy after {SECONDS} s")


@functools.cache
def folder() -> Path:
    """Return a folder for the files of this process, in memory where there is such a place."""
    memory = Path("/dev/shm")
    place = tempfile.TemporaryDirectory(prefix="fald-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    _kept.append(place)
    return Path(place.name)


_kept: list[tempfile.TemporaryDirectory] = []


def one(target: Target, content: bytes) -> bool:
    """Read one input; return whether it was accepted.

    Raises
    ------
    Hang
        It took too long.
    Exception
        A finding: whatever is not a sentence for the user, a warning included.
    """
    place = folder() / f"of-{target.name}"
    place.mkdir(exist_ok=True)
    path = place / target.name
    path.write_bytes(content)
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", checkpoint.CheckpointWarning)
            target.read(path)
        return True
    except UserError as error:
        said = str(error)
        assert "\n" not in said, said
        assert said.endswith((".", "?", "!")), said
        said.encode()
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _table(label: str | None, client: str | None = None) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        rows = read_rows(path, Columns(label, client=client))
        assert np.isfinite(rows.features).all()
        assert np.isfinite(rows.target).all()
        assert rows.features.shape[0] == rows.target.shape[0]
        return rows

    return read


def _csv(path: Path) -> object:
    rows = _table("y")(path)
    # the same through the other two doors: a client column, and a partition of the rows
    for more in ({"client_column": "a"}, {"partition": Partition("dirichlet", 2, seed=1, alpha=1.0)}):
        try:
            clients = Clients.from_file(path, label="y", **more)
            clients.load(range(len(clients)))
        except UserError:
            pass
    return rows


def _gaussian(path: Path) -> object:
    place = path.parent / "gaussians"
    place.mkdir(exist_ok=True)
    path.replace(place / "a.npz")
    return Clients.from_folder(place, "gaussian").load([0])


def _config(path: Path) -> object:
    cfg = config.load(path)
    assert config.from_dict(cfg.to_dict()).to_dict() == cfg.to_dict()
    return cfg


def _checkpoint(path: Path) -> object:
    return checkpoint.load(path.parent)


def _manifest(path: Path) -> object:
    found = condition.read(path.parent, 1e9)
    for line in status.lines(found):
        line.encode()
    return None


def _alive(path: Path) -> object:
    (path.parent / "manifest.json").write_text('{"steps": 10, "state": "running"}')
    return _manifest(path)


def _summary(path: Path) -> object:
    (path.parent / "manifest.json").write_text('{"steps": 10}')
    run = open_run(path.parent)
    str(run.summary()).encode()
    summary.dumps(summary.read(path.parent))
    return run.mean, run.sd


def _npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _parquet(**columns: object) -> bytes:
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


NAMES = (
    "rows.csv", "rows.npz", "ids.npz", "gaussian.npz", "rows.parquet", "ids.parquet", "study.toml", "newest", "manifest.json",
    "alive", "summary.json",
)  # fmt: skip


@functools.cache
def targets() -> dict[str, Target]:
    """Return all targets by the name of the file that they read."""
    table = b"a,b,y\n1.5,-2,0\n0.1,1e-300,1\n"
    rows = {"X": X, "y": Y, "weights": np.ones(4), "feature_names": np.array(["a", "é"])}
    state = {"mean": X, "count": np.array([3, 2**40]), "flags": np.array([True]), "none": np.zeros((0, 2))}
    row = {"name": "a", "mean": 1.0, "sd": 2.0, "mcse": None, "ess": 300.5, "r_hat": 1.01, "ess_per_communication": 0.1}
    counts = {"chains": 4, "records": 90, "steps": 100, "communications": 10, "refreshes": 9}
    table_of = {"parameters": [row], **counts, "warnings": ["run longer"], "seconds": {"sample": 1.0}}
    manifest = {"steps": 100, "state": "stopped", "step": 30, "reason": "SIGTERM", "sampler": {"name": "fald"}, "notes": []}
    life = {"time": 1e9 - 5.0, "step": 30, "at": 1e9 - 6.0, "host": "n1", "pid": 7}
    examples = [config.example_text(name).encode() for name in config.example_names()]
    numbers = [b"nan", b"inf", b"-inf", b"1e999", b"0x1p3", b"1_0", b"-0", b"9" * 400, b"true", b"\xef\xbb\xbf", b"\xff"]
    json_words = [b"[" * 2000, b'{"a":' * 900, b"NaN", b"null", b"true", b"1e999", b"-1", b"{}", b"[]", b'""', b'"\\ud800"']
    json_words += [b"9" * 5000]
    made = [
        Target(
            [table, table.replace(b"\n", b"\r\n"), b'"a",b,y\n" 1 ",2,0\n'], _csv, "rows.csv",
            [*numbers, b",", b"\n", b"\r", b'"', b";"],
        ),
        Target(
            [_npz(**rows), _npz(X=Y[:, None].astype(">f4"), y=Y.astype(bool))], _table(None), "rows.npz",
            [*numbers, b"'descr'", b"|O", b">U9"],
        ),
        Target([_npz(X=X, y=Y, who=np.array(["a", "b", "a", "b"]))], _table(None, "who"), "ids.npz", [b"<U1", b"\0\0\0\xff"]),
        Target(
            [_npz(mean=[1.0, 2.0], covariance=np.eye(2)), _npz(mean=[1.0, 2.0], precision=[1.0, 4.0])], _gaussian, "gaussian.npz",
            [b"\0" * 8, b"\xff" * 8, b"\x7f\xef", b"(2, 2)", b"(2,)", b"(-1,)", b"<f8", b"<f2", b">i8"],
        ),
        Target([_parquet(a=X[:, 0], b=[1, 2, 3, 4], y=Y)], _table("y"), "rows.parquet", numbers),
        Target([_parquet(a=X[:, 0], who=["a", "é", "a", "b"], y=Y)], _table("y", "who"), "ids.parquet", numbers),
        Target(
            examples, _config, "study.toml",
            [*numbers, b"[", b"]", b"=", b'"', b"'''", b"\n[data]\n", b"1979-05-27", b"{}", b"."],
        ),
        Target(
            [b"".join(checkpoint.pack(state, {"step": 3}))], _checkpoint, "newest",
            [*json_words, checkpoint.MAGIC, b'"<f8"', b'"|O"', b'"<U4"', b'"meta"', b"[2, -1]", b"\n"],
        ),
        Target([json.dumps(manifest).encode()], _manifest, "manifest.json", json_words),
        Target([json.dumps(life).encode()], _alive, "alive", json_words),
        Target([json.dumps(table_of).encode()], _summary, "summary.json", json_words),
    ]  # fmt: skip
    assert tuple(target.name for target in made) == NAMES
    return {target.name: target for target in made}
