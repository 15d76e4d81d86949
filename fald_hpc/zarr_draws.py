"""The files of the draws' Zarr v3 store: chunks written whole, one metadata file that makes them visible.

``posterior/theta`` (chain, draw, parameter) has chunks of all chains and :func:`chunk_draws` draws, uncompressed: draws
are noise, and the bytes then depend on no library. Metadata and coordinates come from zarr, built in memory; every file
is put on disk by :func:`fald_hpc.durable.write`, since zarr itself forces nothing to the disk.

Two *generations* of chunks can lie side by side, since the Zarr specification has two schemes for their names, and
``theta/zarr.json`` says which one holds: replacing that file switches between them at once.
"""

import contextlib
import functools
import json
import os
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fald_hpc import durable

CHUNK_BYTES = 1 << 20
"""Size of a chunk, in bytes, unless one draw of all chains is larger."""

SCHEMES = ("default", "v2")
"""Names of chunk k by generation: ``c.0.k.0`` and ``0.k.0``."""

THETA = "posterior/theta"


def chunk_draws(chains: int, dimension: int) -> int:
    """Return the draws of a chunk: a power of two that depends on the global shape only."""
    draws = 1
    while 2 * draws * chains * dimension * 8 <= CHUNK_BYTES:
        draws *= 2
    return draws


@functools.lru_cache(maxsize=16)
def documents(
    names: tuple[str, ...], chains: int, chunk: int, draws: int, thin: int, generation: int, seal: bool
) -> dict[str, bytes]:
    """Return every file of a store but the chunks of ``theta``, by path; not to be changed (they are remembered).

    Parameters
    ----------
    names : tuple of str
        The d parameters.
    chains, chunk, draws : int
        Shape of ``theta`` (chains, draws) and of its chunks (chains, chunk).
    thin : int
        Kept as its attribute.
    generation : int
        0 or 1: how its chunks are named.
    seal : bool
        Repeat all metadata in the groups' own files ("consolidated"), for a store that will not change.
    """
    import zarr
    from zarr.storage import MemoryStore

    files: dict = {}
    store = MemoryStore(store_dict=files)
    root = zarr.create_group(store=store, zarr_format=3)
    group = root.create_group("posterior", attributes={"inference_library": "fald_hpc"})
    group.create_array(
        "theta",
        shape=(chains, draws, len(names)),
        chunks=(chains, chunk, len(names)),
        dtype="<f8",
        fill_value=float("nan"),
        compressors=None,
        chunk_key_encoding={"name": SCHEMES[generation], "separator": "."},
        dimension_names=("chain", "draw", "parameter"),
        attributes={"thin": thin},
    )
    values = {"chain": ("<i8", np.arange(chains)), "parameter": ("string", np.array(names, dtype=object))}
    for name, (dtype, value) in values.items():
        array = group.create_array(
            name, shape=value.shape, chunks=value.shape, dtype=dtype, compressors=None, dimension_names=(name,)
        )
        array[:] = value
    if seal:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # consolidated metadata: in use everywhere, not yet in the specification
            zarr.consolidate_metadata(store, path="posterior")
            zarr.consolidate_metadata(store)
    return {name: buffer.to_bytes() for name, buffer in files.items()}


class ZarrDraws:
    """The store's files in a folder, or in memory when the folder is None.

    Parameters
    ----------
    folder : path or None
        ``DIR/draws.zarr``.
    names : sequence of str
        The d parameters.
    chains : int
        All chains.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, names: Sequence[str], chains: int) -> None:
        self.folder = None if folder is None else Path(folder)
        self.names, self.chains = tuple(names), chains
        self.chunk_draws = chunk_draws(chains, len(self.names))
        self._memory: dict[str, bytes] = {}

    def start(self, thin: int) -> None:
        """Replace whatever is there by an empty store."""
        self._memory.clear()
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)
        self._write_all(self._documents(0, thin, 0, seal=False))

    def reopen(self) -> int:
        """Make a store that was left behind ready for more draws; return its stride.

        Raises
        ------
        OSError, ValueError, KeyError
            It is missing or damaged.
        """
        thin = int(json.loads(self._read(f"{THETA}/zarr.json"))["attributes"]["thin"])
        self._write_all(self._documents(0, thin, 0, seal=False), but=f"{THETA}/zarr.json")
        return thin

    def publish(self, draws: int, thin: int, generation: int) -> None:
        """Make the first ``draws`` draws of a generation the visible ones."""
        name = f"{THETA}/zarr.json"
        document = json.loads(self._documents(0, thin, generation, seal=False)[name])
        document["shape"][1] = draws
        self._write(name, json.dumps(document, indent=2).encode())

    def seal(self, draws: int, thin: int, generation: int) -> None:
        """Publish for good: remove every other chunk and consolidate the metadata."""
        self.publish(draws, thin, generation)
        self.sweep(generation, -(-draws // self.chunk_draws))
        self._write_all(self._documents(draws, thin, generation, seal=True))

    def sweep(self, generation: int, chunks: int) -> None:
        """Remove the chunks of the other generation, those from number ``chunks`` on, and unfinished files."""
        keep = {f"{THETA}/zarr.json"} | {self._chunk(generation, k) for k in range(chunks)}
        if self.folder is None:
            for name in [n for n in self._memory if n.startswith(f"{THETA}/") and n not in keep]:
                del self._memory[name]
            return
        for entry in list(os.scandir(self.folder / THETA)):
            if f"{THETA}/{entry.name}" not in keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)

    def write_chunk(self, generation: int, k: int, block: np.ndarray) -> None:
        """Write chunk k: float64[s, <= chunk_draws, d], filled up with NaN."""
        if block.shape[1] < self.chunk_draws:
            padded = np.full((self.chains, self.chunk_draws, len(self.names)), np.nan)
            padded[:, : block.shape[1]] = block
            block = padded
        self._write(self._chunk(generation, k), block.astype("<f8", copy=False).tobytes())

    def read_chunk(self, generation: int, k: int) -> np.ndarray:
        """Return chunk k, float64[s, chunk_draws, d]; NaN where it was not full.

        Raises
        ------
        OSError, KeyError, ValueError
            It is missing or of another size.
        """
        content = np.frombuffer(self._read(self._chunk(generation, k)), "<f8")
        return content.reshape(self.chains, self.chunk_draws, len(self.names)).astype(np.float64)

    def _documents(self, draws: int, thin: int, generation: int, seal: bool) -> dict[str, bytes]:
        return documents(self.names, self.chains, self.chunk_draws, draws, thin, generation, seal)

    @staticmethod
    def _chunk(generation: int, k: int) -> str:
        return f"{THETA}/{('c.0', '0')[generation]}.{k}.0"

    def _read(self, name: str) -> bytes:
        return self._memory[name] if self.folder is None else (self.folder / name).read_bytes()

    def _write(self, name: str, content: bytes) -> None:
        if self.folder is None:
            self._memory[name] = content
        else:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            durable.write(self.folder / name, content)

    def _write_all(self, files: dict[str, bytes], but: str = "") -> None:
        """Write files, innermost first, so that a folder is a group only when it is one."""
        for name in sorted(files, key=lambda n: (-n.count("/"), n)):
            if name != but:
                self._write(name, files[name])
