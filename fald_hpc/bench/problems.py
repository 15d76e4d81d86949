"""Data of the workloads, drawn from the package's own generator: the same everywhere, nothing is downloaded."""

from typing import Any

import numpy as np

from fald_hpc.data import builtin
from fald_hpc.data.clients import Clients
from fald_hpc.kernels import noise, normals

SEED = 20


def gaussian(b: int, d: int) -> tuple[Clients, np.ndarray, float]:
    """Return b dense Gaussian clients in d dimensions, the mode, and a stable step size."""
    clients = builtin.gaussian(b, d, seed=9)
    parts: list[Any] = clients.load(range(b))
    precisions = np.array([part.precision for part in parts])
    means = np.array([part.mean for part in parts])
    pull = np.einsum("ijk,ik->j", precisions, means)
    largest = float(np.linalg.eigvalsh(precisions).max())
    return clients, np.linalg.solve(precisions.sum(axis=0), pull), 0.2 / largest


def rows(n: int, p: int, stream: int) -> np.ndarray:
    """Return normals: float64[n, p]."""
    out = np.empty((n, p))
    normals.fill_normals(noise.key(SEED), noise.CHECK, stream, 0, 0, out)
    return out


def logistic(b: int, n: int, p: int) -> tuple[Clients, np.ndarray, float]:
    """Return b clients of n rows and p features, a point near the mode, and a stable step size."""
    weights = rows(1, p, 1000)[0] / np.sqrt(p)
    data = []
    for i in range(b):
        x = rows(n, p, i)
        noise_ = rows(n, 1, 2000 + i)[:, 0]
        data.append((x, (x @ weights + noise_ > 0.0).astype(np.float64)))
    return Clients.from_arrays(data), weights, 0.1 / n


def softmax(b: int, n: int, p: int, classes: int) -> tuple[Clients, np.ndarray, float]:
    """Return b clients of n rows, p features (the shape of MNIST: 784), K classes; start at 0; a stable step size."""
    data = []
    for i in range(b):
        x = np.abs(rows(n, p, i))
        scores = rows(n, classes, 3000 + i)
        data.append((x, scores.argmax(axis=1).astype(np.float64)))
    return Clients.from_arrays(data), np.zeros((p + 1) * classes), 0.01 / (n * p)
