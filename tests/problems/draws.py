"""The package's random numbers handed to the transcription, one draw at a time.

What the addresses of the draws are is the package's own choice; that they are good draws is tested in ``kernels/``.
"""

import numpy as np

from fald_hpc.kernels import coins, minibatch, noise, normals


class CounterDraws:
    """Draws of one chain of a run with a seed.

    Parameters
    ----------
    batch : int or None
        Rows of a minibatch; None for all.
    shared : bool
        Whether the chain follows the common schedule.
    """

    def __init__(self, seed, chain, rows, d, comm_prob, refresh_prob=1.0, batch=None, shared=True):
        self.key = noise.key(seed)
        self.chain, self.rows, self.d, self.batch = chain, list(rows), d, batch
        self.stream = coins.SHARED if shared else chain
        self.thresholds = coins.threshold(comm_prob), coins.threshold(refresh_prob)

    def _normals(self, purpose, client, k):
        out = np.empty((1, self.d))
        normals.fill_normals(self.key, purpose, self.chain, client, k, out)
        return out[0]

    def common(self, k):
        return self._normals(noise.COMMON, 0, k)

    def private(self, client, k):
        return self._normals(noise.PRIVATE, client, k)

    def subset(self, client, k, again=0):
        n = self.rows[client]
        m = n if self.batch is None else min(self.batch, n)
        out = np.empty(m, np.int64)
        # another minibatch for the negative control: from a chain that no run here has
        minibatch.subset(self.key, self.chain + 1000 * again, client, k, n, m, out)
        return out

    def _coin(self, k, bit):
        out = np.empty(1, np.uint8)
        coins.fill(self.key, self.stream, k, *self.thresholds, out)
        return bool(out[0] & bit)

    def averaging(self, k):
        return self._coin(k, coins.AVERAGE)

    def refresh(self, k):
        return self._coin(k, coins.REFRESH)
