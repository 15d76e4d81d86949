"""The split of one file over clients, saved beside the results: which client each row went to, and the labels of each."""

import io
from pathlib import Path

import numpy as np

from fald_hpc import durable
from fald_hpc.data.clients import Clients

FILE = "partition.npz"


def save(folder: Path, clients: Clients) -> None:
    """Write ``partition.npz`` where the clients are a split of one file, else nothing.

    Its arrays: ``client`` int64[n], the client index of every row of the file; ``ids`` str[b]; and, for a partition by
    label, ``labels`` float64[k] and ``label_counts`` int64[b, k].
    """
    if clients.assignment is None:
        return
    client = np.empty(sum(part.size for part in clients.assignment), np.int64)
    for i, part in enumerate(clients.assignment):
        client[part] = i
    arrays = {"client": client, "ids": np.array(clients.ids)}
    if clients.label_table is not None:
        arrays["labels"], arrays["label_counts"] = clients.label_table
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    durable.write(folder / FILE, buffer.getvalue())
