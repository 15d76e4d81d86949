"""The loops a user of numba would write: ``np.random``, one core, ``fastmath``, no blocks, no vectors by hand."""

import numpy as np
from numba import njit


@njit(fastmath=True)
def quadratic(precision, mean, start, gamma, tau, p, q, chains, steps, reduced):
    """Run FALD or VR-FALD* (``reduced``) for dense quadratics; return sums of X̄ and the number of averagings."""
    b, d = mean.shape
    total, count = np.zeros(d), 0
    common, private = np.sqrt(2.0 * gamma * tau / b), np.sqrt(2.0 * gamma * (1.0 - tau))
    z, g = np.empty(d), np.empty(d)
    for _ in range(chains):
        x = np.empty((b, d))
        x[:] = start
        y, shift, center = start.copy(), np.zeros(d), np.empty(d)
        for i in range(b):
            shift += precision[i] @ (y - mean[i]) / b
        for _step in range(steps):
            refresh = reduced and np.random.random() < q
            if refresh:
                center[:] = 0.0
                for i in range(b):
                    center += x[i] / b
            for j in range(d):
                z[j] = common * np.random.normal() if tau > 0.0 else 0.0
            for i in range(b):
                for j in range(d):
                    g[j] = shift[j] if reduced else 0.0
                    for k in range(d):
                        g[j] += precision[i, j, k] * (x[i, k] - (y[k] if reduced else mean[i, k]))
                for j in range(d):
                    x[i, j] += z[j] - gamma * g[j]
                    if tau < 1.0:
                        x[i, j] += private * np.random.normal()
            if np.random.random() < p:
                average = np.zeros(d)
                for i in range(b):
                    average += x[i] / b
                x[:] = average
                total += average
                count += 1
            if refresh:
                y[:] = center
                shift[:] = 0.0
                for i in range(b):
                    shift += precision[i] @ (y - mean[i]) / b
    return total, count


@njit(fastmath=True)
def logistic(rows, labels, start, gamma, p, q, batch, steps, reduced):
    """Run FALD or VR-FALD* for logistic clients of n rows, both terms of the estimate computed anew at every step."""
    b, n, d = rows.shape
    total, count = np.zeros(d), 0
    noise = np.sqrt(2.0 * gamma / b)
    x = np.empty((b, d))
    x[:] = start
    y, shift = start.copy(), np.zeros(d)
    z, g, center = np.empty(d), np.empty(d), np.empty(d)
    _shift(rows, labels, y, shift)
    for _step in range(steps):
        refresh = reduced and np.random.random() < q
        if refresh:
            center[:] = 0.0
            for i in range(b):
                center += x[i] / b
        for j in range(d):
            z[j] = noise * np.random.normal()
        for i in range(b):
            for j in range(d):
                g[j] = (x[i, j] - y[j]) / b + shift[j] if reduced else x[i, j] / b
            for _row in range(batch):
                row = np.random.randint(0, n)
                here, there = 0.0, 0.0
                for j in range(d):
                    here += rows[i, row, j] * x[i, j]
                    if reduced:
                        there += rows[i, row, j] * y[j]
                factor = 1.0 / (1.0 + np.exp(-here)) - labels[i, row]
                if reduced:
                    factor -= 1.0 / (1.0 + np.exp(-there)) - labels[i, row]
                factor *= n / batch
                for j in range(d):
                    g[j] += factor * rows[i, row, j]
            for j in range(d):
                x[i, j] += z[j] - gamma * g[j]
        if np.random.random() < p:
            average = np.zeros(d)
            for i in range(b):
                average += x[i] / b
            x[:] = average
            total += average
            count += 1
        if refresh:
            y[:] = center
            _shift(rows, labels, y, shift)
    return total, count


@njit(fastmath=True)
def _shift(rows, labels, y, shift):
    b, n, d = rows.shape
    for j in range(d):
        shift[j] = y[j] / b
    for i in range(b):
        for row in range(n):
            score = 0.0
            for j in range(d):
                score += rows[i, row, j] * y[j]
            factor = (1.0 / (1.0 + np.exp(-score)) - labels[i, row]) / b
            for j in range(d):
                shift[j] += factor * rows[i, row, j]
