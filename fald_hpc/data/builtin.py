"""Data of the built-in examples; nothing is downloaded.

Titanic: the classic four-way table of 2201 people (class, sex, age, survival), specification section 5.
Gaussian: the experiment of the paper's section 10.1 with the generator of its authors' script. Regression: simulated.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import variates
from fald_hpc.data.clients import Clients
from fald_hpc.data.partition import Partition, label_table

# class (first 0, second 1, third 2, crew 3), child, male, died, survived
TITANIC = (
    (0, 1, 1, 0, 5),
    (0, 1, 0, 0, 1),
    (0, 0, 1, 118, 57),
    (0, 0, 0, 4, 140),
    (1, 1, 1, 0, 11),
    (1, 1, 0, 0, 13),
    (1, 0, 1, 154, 14),
    (1, 0, 0, 13, 80),
    (2, 1, 1, 35, 13),
    (2, 1, 0, 17, 14),
    (2, 0, 1, 387, 75),
    (2, 0, 0, 89, 76),
    (3, 0, 1, 670, 192),
    (3, 0, 0, 3, 20),
)
TITANIC_PARTITION = Partition("dirichlet", clients=10, seed=1912, alpha=1.0)
# streams of the generator beyond those of partitions
_MEANS, _SCALES, _EIGENVALUES, _DIRECTIONS, _FEATURES, _NOISE = range(1 << 16, (1 << 16) + 6)


def titanic_rows() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the features float64[2201, 4] (intercept; class, child, male standardised) and survival float64[2201].

    Rows are in the order of the table, those who died first. Sums of the integer codes are exact, so the standardised
    values have the same bits everywhere.
    """
    codes: list[tuple[int, int, int]] = []
    survived: list[int] = []
    for group, child, male, died, lived in TITANIC:
        codes += [(group, child, male)] * (died + lived)
        survived += [0] * died + [1] * lived
    table = np.array(codes, np.int64)
    n = len(codes)
    features = np.ones((n, 4))
    for j in range(3):
        total = int(table[:, j].sum())
        squares = int((table[:, j] ** 2).sum())
        sd = math.sqrt(n * squares - total * total) / n
        features[:, j + 1] = (table[:, j] - total / n) / sd
    return features, np.array(survived, np.float64)


def titanic() -> Clients:
    """Return the Titanic's people as 10 clients, split by per-label Dirichlet shares with concentration 1."""
    x, y = titanic_rows()
    parts = TITANIC_PARTITION.split(y)
    clients = Clients.from_arrays(
        {name: (x[rows], y[rows]) for name, rows in zip(TITANIC_PARTITION.ids, parts, strict=True)},
        feature_names=("intercept", "class", "child", "male"),
    )
    clients.assignment = parts
    clients.label_table = label_table(y, parts)
    return clients


def gaussian(b: int, d: int, seed: int) -> Clients:
    """Return b Gaussian clients in d dimensions (d even), drawn as in the script of the paper's authors.

    Means are 10 N(0, I); covariances s_i blockdiag(R diag(U(0,1), U(0,1)) R') of 2 by 2 blocks with random rotations R
    and s_i ~ U(0.1, 10.1).
    """
    if d % 2 or d < 2 or b < 1:
        raise ValueError("the Gaussian example is built of 2 by 2 blocks: d must be even, b positive")
    means = 10.0 * variates.normals(seed, 0, _MEANS, b * d).reshape(b, d)
    scales = 0.1 + 10.0 * variates.uniforms(seed, 0, _SCALES, b)
    eigenvalues = variates.uniforms(seed, 0, _EIGENVALUES, b * d).reshape(b, d // 2, 2)
    # a normalised pair of normals is a uniform direction, without a sine that differs between processors
    pairs = variates.normals(seed, 0, _DIRECTIONS, b * d).reshape(b, d // 2, 2)
    precisions = np.zeros((b, d, d))
    for i in range(b):
        for j in range(d // 2):
            u, v = pairs[i, j]
            u, v = float(u), float(v)
            square = u * u + v * v
            first = 1.0 / (float(scales[i]) * float(eigenvalues[i, j, 0]))
            second = 1.0 / (float(scales[i]) * float(eigenvalues[i, j, 1]))
            off = (first - second) * u * v / square
            low, high = 2 * j, 2 * j + 1
            precisions[i, low, low] = (first * u * u + second * v * v) / square
            precisions[i, high, high] = (first * v * v + second * u * u) / square
            precisions[i, low, high] = precisions[i, high, low] = off
    return Clients.from_gaussians(means, precisions=precisions)


def gaussian_small() -> Clients:
    """Return a small instance of the paper's Gaussian experiment: b = 10, d = 4."""
    return gaussian(10, 4, seed=9)


def gaussian_table1() -> Clients:
    """Return an instance of the paper's Gaussian experiment at the size of its Table 1: b = 100, d = 20."""
    return gaussian(100, 20, seed=9)


def quickstart_regression() -> Clients:
    """Return 5 clients with 30 to 150 simulated rows: intercept 1, slopes 2 and -1, noise sd 0.5.

    The clients' features have different means, so that local steps pull the clients apart.
    """
    seed = 7
    data = {}
    for i, n in enumerate((30, 60, 90, 120, 150)):
        centre = 0.5 * (i - 2)
        x = centre + variates.normals(seed, 0, _FEATURES + 8 * (i + 1), 2 * n).reshape(n, 2)
        noise = variates.normals(seed, 0, _NOISE + 8 * (i + 1), n)
        y = 1.0 + 2.0 * x[:, 0] - x[:, 1] + 0.5 * noise
        data[f"site-{i + 1}"] = (x, y)
    return Clients.from_arrays(data, feature_names=("dose", "age"))


EXAMPLES = {
    "titanic": titanic,
    "gaussian": gaussian_small,
    "gaussian-table1": gaussian_table1,
    "quickstart-regression": quickstart_regression,
}
GAUSSIAN_EXAMPLES = ("gaussian", "gaussian-table1")
