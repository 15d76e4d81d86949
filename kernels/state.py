"""The records that the compiled loops take: scalars of a run, the state of its chains, and work space.

Letters: b all clients, c clients of this rank, s chains of this rank, d dimension, n rows of this rank's clients.
"""

from typing import NamedTuple

import numpy as np

from fald_hpc.kernels import aligned
from fald_hpc.kernels.collectives import PENDING_DOUBLES
from fald_hpc.kernels.exact_sum import BINS
from fald_hpc.kernels.normals import LANES

VERSION = 5
"""Of what a checkpoint holds, and of the arithmetic that goes on from it; raised with every change, so that an older one is
refused in a sentence."""
COIN_BLOCK = 1024
IN_TURNS = 6
"""Clients that take short steps in turns."""
SHORT = 32
"""Dimension up to which a step is short."""
SHORT_BATCH = 16
"""Rows of a minibatch up to which a step is short."""
SHORT_GROUPS = 2
"""Groups of eight clients that take steps on short rows together."""
ROWS_AHEAD = 4096
"""Rows of a group that are chosen ahead for them, of all groups and chains: 256 KiB."""
FEWEST_AHEAD = 16
"""Steps for which these should do; with more chains they are chosen for one chain after another."""
NEVER = -(1 << 62)
"""The iteration of what is not there: noise, rows, positions."""
SCRATCH = 15
"""Work space of dense quadratics, in vectors of a group (``quadratic_lanes_call.h``)."""
FLAGS = 3
"""Numbers that ride behind a chain's bins: values outside the window, non-finite values, failed gradients."""

# what a message carries: nothing; X; X for a new reference; X, and X of before the step for a new reference; ∇U^i(Y)
NOTHING, AVERAGING, REFERENCE, BOTH, SHIFT = range(5)

# results of a compiled segment
DONE, NOT_FINITE, FAILED, MPI_ERROR = range(4)
# of the receipt of a message, besides: some value lies outside its window
OUTSIDE = 4

# where advancing leaves the positions X^i: in theta, added to the message, or where further steps begin fastest; with AHEAD
# what is added is where they are before the last step; with GOES_ON no event ends there: the next step is one of the same gap
STORE, ADD, KEEP, AHEAD, GOES_ON = 8, 16, 32, 128, 256

# entries of State.tally
AVERAGES, REFRESHES, MESSAGES, REPEATS, ROWS_TOUCHED, LOOP_STEP, N_TALLIES = range(7)


class Settings(NamedTuple):
    """Scalars of a run, equal on all ranks but for the first three and, between chain groups, ``batches``."""

    communicator: int  # of the ranks that share this rank's chains
    first_client: int  # global index of local client 0
    first_chain: int  # global index of local chain 0
    every_step: bool  # record every iteration, not only those that average (all clients on this rank)
    key: np.uint64  # generator key
    n_clients: int  # b
    width: int  # bits of a grid of the exact sums
    step_size: float  # γ, parameter²
    common_scale: float  # sqrt(2γτ/b)
    private_scale: float  # sqrt(2γ(1-τ))
    average_threshold: np.uint64  # of p_c
    refresh_threshold: np.uint64  # of q_c
    burn_in: int  # iterations that are not recorded
    side_by_side: int  # chains that take their steps together, over all ranks: all with shared coins, else one
    batches: int  # of this rank's chains, each with messages of its own (:mod:`fald_hpc.kernels.batches`)


class State(NamedTuple):
    """State of the chains; right after an averaging (mean, reference, shift, window) is all of it."""

    theta: np.ndarray  # float64[c, s, d]: X^i
    mean: np.ndarray  # float64[s, d]: the average at the last averaging
    reference: np.ndarray  # float64[s, d]: Y
    shift: np.ndarray  # float64[s, d]: C
    kept: np.ndarray  # float64[s, ...]: residuals at Y, n·K a chain
    window: np.ndarray  # int64[s]: exponents of the windows of the parameters
    gradient_window: np.ndarray  # int64[s]: of the gradients
    averaged_at: np.ndarray  # int64[s]: iteration before which all X^i were equal, or -1
    offset: np.ndarray  # float64[c, s, d]: X^i - Y, or X^i - μ_i, amid a gap of dense quadratics; empty for others
    offset_at: np.ndarray  # int64[s]: iteration before which steps go on from there and theta is only their sum, or NEVER
    tally: np.ndarray  # int64[N_TALLIES]


class Log(NamedTuple):
    """What a segment leaves beside the state; the steps between two averagings do not see it."""

    records: np.ndarray  # float64[s, r, d]: averages over clients
    counts: np.ndarray  # int64[s]: records[s, : counts[s]] are valid
    apart: np.ndarray  # float64[c, s]: sums of |X^i - mean|² just before averagings after burn-in, of those measured
    averagings: np.ndarray  # int64[s]: averagings after burn-in


class Work(NamedTuple):
    """Work space: no result depends on what is here between segments.

    What was drawn ahead stays, with the iteration it is for; minibatches are described.
    """

    gradient: np.ndarray  # float64[c, s, d]: full gradients, or X^i before a step
    message: np.ndarray  # float64[2 s, 3 d + FLAGS]
    received: np.ndarray  # float64[2 s, 3 d + FLAGS]
    maxima: np.ndarray  # float64[2, 2 s]: to send and received
    added: np.ndarray  # int64[s, 2]: 1 if a batch has its vectors in the message already; where from to compute them again, or -1
    under_way: np.ndarray  # int64[s, 3]: what each batch's last message carries, the iteration after it, ``added[lo, 1]``
    requests: np.ndarray  # float64[s, PENDING_DOUBLES]: what MPI keeps of it
    average: np.ndarray  # float64[s, d]
    pending: np.ndarray  # float64[s, d]: the next reference
    coins: np.ndarray  # uint8[COIN_BLOCK]
    coins_at: np.ndarray  # int64[2]: chain and first iteration of the coins
    common: np.ndarray  # float64[s, t, d]: Z
    common_at: np.ndarray  # int64[s]: iteration of its first row
    base: np.ndarray  # float64[t, d]: what moves all clients of a chain alike
    private: np.ndarray  # float64[m, t, d]: Z^i of m clients that take their steps in turns
    words: np.ndarray  # uint64[m, t * w]: random words of their minibatches
    mark: np.ndarray  # uint8[max n_i]
    rows: np.ndarray  # int64[2, m, max minibatch]: of a step and of the next one
    estimate: np.ndarray  # float64[d]: G, or how a step moves
    n_rows: np.ndarray  # int64[c]: N_i
    batch: np.ndarray  # int64[c]: n_i
    failed: np.ndarray  # int64[3]: local client, chain and iteration of the first failed gradient, or -1
    lanes_common: np.ndarray  # float64[g, t, d, LANES]: Z of g groups of chains (this and below: fused steps only)
    lanes_at: np.ndarray  # int64[g, 2]: first chain of each group there, and iteration of its first row
    lanes_private: np.ndarray  # float64[2, t, d, LANES]: Z^i of two groups of chains or clients
    lanes_rows: np.ndarray  # int64[s or 1, g, t, places, LANES]: rows of the minibatches of g groups of clients
    rows_at: np.ndarray  # int64[s or 1]: iteration of the first of them
    lanes_bins: np.ndarray  # float64[2, 3 d + 1, LANES]: exact sums of two groups of chains, or over eight clients in the first
    lanes_base: np.ndarray  # float64[2, t, d, LANES]: what moves all clients of two groups of chains alike
    lanes_x: np.ndarray  # float64[2, n, d, LANES]: X^i, or its offset, twice, so that steps can begin at one and end at the other
    lanes_x_at: np.ndarray  # int64[2, s]: iterations at which they are there, and theta need not say so
    lanes_scratch: np.ndarray  # float64[SCRATCH d + 1, LANES]


def new_state(c: int, s: int, d: int, kept: int, offsets: bool = False) -> State:
    """Return a zero state of c clients, s chains and d coordinates, with ``kept`` numbers a chain.

    ``offsets``: for steps of dense quadratics.
    """
    return State(
        theta=np.zeros((c, s, d)),
        mean=np.zeros((s, d)),
        reference=np.zeros((s, d)),
        shift=np.zeros((s, d)),
        kept=np.zeros((s, kept)),
        window=np.zeros(s, np.int64),
        gradient_window=np.zeros(s, np.int64),
        averaged_at=np.full(s, -1, np.int64),
        offset=np.zeros((c, s, d) if offsets else (0, 0, 0)),
        offset_at=np.full(s, NEVER, np.int64),
        tally=np.zeros(N_TALLIES, np.int64),
    )


def new_log(c: int, s: int, d: int) -> Log:
    """Return an empty log of c clients, s chains and d coordinates, with room for one record."""
    return Log(np.zeros((s, 1, d)), np.zeros(s, np.int64), np.zeros((c, s)), np.zeros(s, np.int64))


def new_work(
    s: int, d: int, n_rows: np.ndarray, batch: np.ndarray, n_words: int, lanes: bool = False, places: int = 0
) -> Work:
    """Return work space for s chains and d coordinates.

    ``n_words`` random words pick the largest minibatch; ``lanes`` for fused steps of quadratics, ``places`` of a step's rows
    for those of regressions with short rows (:func:`fald_hpc.kernels.short_steps.places`).
    """
    c = n_rows.size
    # noise of as many iterations as stay in the second-level cache beside the clients' data
    t = int(min(max(1, 32768 // (s * d)), 256))
    groups = -(-s // LANES) if lanes else 0
    # a gap that fits into what is there takes no second pass: more rows, of which two groups of chains read theirs at a time
    in_lanes, private = (int(min(max(1, numbers // (n * d)), 256)) for numbers, n in ((131072, s), (16384, 2 * LANES)))
    together = IN_TURNS if d <= SHORT else 1
    client_groups = -(-c // LANES)
    largest = int(batch.max(initial=1))
    every_chain = places * s * client_groups * FEWEST_AHEAD <= ROWS_AHEAD
    slots = s if every_chain else 1
    ahead = min(t, max(1, ROWS_AHEAD // max(1, places * slots * client_groups))) if places else 0
    return Work(
        gradient=np.zeros((c, s, d)),
        message=np.zeros((2 * s, BINS * d + FLAGS)),
        received=np.zeros((2 * s, BINS * d + FLAGS)),
        maxima=np.zeros((2, 2 * s)),
        added=np.tile(np.array([0, -1]), (s, 1)),
        under_way=np.zeros((s, 3), np.int64),
        requests=np.zeros((s, PENDING_DOUBLES)),
        average=np.zeros((s, d)),
        pending=np.zeros((s, d)),
        coins=np.zeros(COIN_BLOCK, np.uint8),
        coins_at=np.full(2, -2, np.int64),
        common=np.zeros((s, t, d)),
        common_at=np.full(s, NEVER, np.int64),
        base=np.zeros((t, d)),
        private=np.zeros((together, t, d)),
        words=np.zeros((together, t * n_words), np.uint64),
        mark=np.zeros(max(1, int(n_rows.max(initial=0))), np.uint8),
        rows=np.zeros((2, together if largest <= SHORT_BATCH else 1, largest), np.int64),
        estimate=np.zeros(d),
        n_rows=n_rows.astype(np.int64),
        batch=batch.astype(np.int64),
        failed=np.full(3, -1, np.int64),
        lanes_common=aligned.zeros((groups, in_lanes, d, LANES)),
        lanes_at=np.full((groups, 2), NEVER, np.int64),
        lanes_private=aligned.zeros((2, private if lanes else ahead, d, LANES)),
        lanes_rows=np.zeros((slots, client_groups, ahead, places, LANES), np.int64),
        rows_at=np.full(slots, NEVER, np.int64),
        lanes_bins=aligned.zeros((2 if lanes else 0, BINS * d + 1, LANES)),
        lanes_base=aligned.zeros((2 if lanes else 0, in_lanes, d, LANES)),
        # clients or chains in the lanes; chains in pairs of groups
        lanes_x=aligned.zeros((2, max(2 * -(-groups // 2) * c, s * client_groups) if lanes else 0, d, LANES)),
        lanes_x_at=np.full((2, s), NEVER, np.int64),
        lanes_scratch=aligned.zeros((SCRATCH * d + 1 if lanes else 0, LANES)),
    )
