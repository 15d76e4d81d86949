# cython: language_level=3, boundscheck=False, wraparound=False
"""``MPI_Allreduce`` and ``MPI_Iallreduce`` for compiled code, without compiling against any MPI library.

The addresses of the MPI functions and the handles come from mpi4py at run time (see :mod:`fald_hpc.comm`), so one build
serves Open MPI, MPICH and the MPI standard ABI. Handles are pointers in some libraries and ints in others; both calling
forms are here and the size of a handle picks one.

A clock sums the time that this rank spends in messages. For scaling studies (:mod:`fald_hpc.scaling`) there are two more
instruments, both off by default: a trace of the times at which this rank entered and left each message (of one started in
advance: its wait), and the emulation of a slow network by a sleep in front of each message (of one started in advance: up
to the same time after its last rank started it).
"""

import os

from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, nanosleep, timespec

ctypedef int (*allreduce_int)(const void *, void *, int, int, int, int) noexcept nogil
ctypedef int (*allreduce_pointer)(const void *, void *, int, void *, void *, void *) noexcept nogil
ctypedef int (*iallreduce_int)(const void *, void *, int, int, int, int, void *) noexcept nogil
ctypedef int (*iallreduce_pointer)(const void *, void *, int, void *, void *, void *, void *) noexcept nogil
ctypedef int (*wait_function_type)(void *, void *) noexcept nogil
ctypedef int (*test_function_type)(void *, int *, void *) noexcept nogil

cdef enum:
    MAX_COMMUNICATORS = 64


cdef struct Pending:
    # a message under way; the caller keeps it, as doubles, and does not look inside
    void *request      # MPI_Request, an int in its first bytes where handles are ints
    void *last_request # of the message that finds the last rank's time, with an emulated network only
    double started     # when this rank started it, in seconds of the monotonic clock
    double last        # the same of the last rank; all must be on one machine
    int64_t error      # the first error code

cdef void *allreduce_function = NULL
cdef void *iallreduce_function = NULL
cdef void *wait_function = NULL
cdef void *test_function = NULL
cdef int64_t status[32]  # room for an MPI_Status of any library, never read
cdef int handles_are_ints = 0
cdef void *double_type = NULL
cdef void *sum_operation = NULL
cdef void *max_operation = NULL
cdef void *communicators[MAX_COMMUNICATORS]
cdef int n_communicators = 0

# trace: two doubles a message, entered and left, in seconds of the monotonic clock
cdef double *trace_times = NULL
cdef int64_t trace_room = 0
cdef int64_t trace_length = 0
cdef int64_t trace_numbers = 0

cdef double emulated_seconds = 0.0

# clock: messages since it was started, seconds in them, and the shortest of them
cdef int64_t clock_messages = 0
cdef double clock_seconds = 0.0
cdef double clock_shortest = 0.0


cdef double _now() noexcept nogil:
    """Return seconds of the monotonic clock."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec + 1e-9 * t.tv_nsec


cdef void _sleep(double seconds) noexcept nogil:
    """Sleep, so that ranks that share a core can compute meanwhile."""
    cdef timespec t
    t.tv_sec = <long>seconds
    t.tv_nsec = <long>(1e9 * (seconds - t.tv_sec))
    nanosleep(&t, NULL)


cdef void *_read_handle(uintptr_t address) noexcept:
    """Return the MPI handle stored at an address, widened to a pointer."""
    if handles_are_ints:
        return <void *><uintptr_t>(<unsigned int *>address)[0]
    return (<void **>address)[0]


cdef int64_t _reduce(
    const double *send, double *receive, int64_t count, int64_t communicator, int64_t maximum
) noexcept nogil:
    cdef void *operation = max_operation if maximum else sum_operation
    if communicator < 0 or communicator >= n_communicators or count > 2147483647:
        return -1
    if handles_are_ints:
        return (<allreduce_int>allreduce_function)(
            send, receive, <int>count, <int><uintptr_t>double_type, <int><uintptr_t>operation,
            <int><uintptr_t>communicators[communicator],
        )
    return (<allreduce_pointer>allreduce_function)(
        send, receive, <int>count, double_type, operation, communicators[communicator]
    )


cdef int64_t fald_allreduce(
    const double *send, double *receive, int64_t count, int64_t communicator, int64_t maximum
) noexcept nogil:
    """Reduce doubles over a registered communicator; return the MPI error code (0 is success)."""
    global trace_length, trace_numbers, clock_messages, clock_seconds, clock_shortest
    cdef double entered = _now(), left
    cdef int64_t error
    if emulated_seconds > 0.0:
        # all ranks sleep from when they arrive: the message ends as long after the last one as on a slow network
        _sleep(emulated_seconds)
    error = _reduce(send, receive, count, communicator, maximum)
    left = _now()
    if clock_messages == 0 or left - entered < clock_shortest:
        clock_shortest = left - entered
    clock_messages += 1
    clock_seconds += left - entered
    if trace_room > 0:
        if trace_length < trace_room:
            trace_times[2 * trace_length] = entered
            trace_times[2 * trace_length + 1] = left
            trace_length += 1
        trace_numbers += count
    return error


cdef int64_t _start(
    const void *send, void *receive, int64_t count, int64_t communicator, void *operation, void *request
) noexcept nogil:
    if communicator < 0 or communicator >= n_communicators or count > 2147483647:
        return -1
    if handles_are_ints:
        return (<iallreduce_int>iallreduce_function)(
            send, receive, <int>count, <int><uintptr_t>double_type, <int><uintptr_t>operation,
            <int><uintptr_t>communicators[communicator], request,
        )
    return (<iallreduce_pointer>iallreduce_function)(
        send, receive, <int>count, double_type, operation, communicators[communicator], request
    )


cdef int64_t _wait(void *request) noexcept nogil:
    return (<wait_function_type>wait_function)(request, <void *>status)


cdef int64_t fald_start(
    const double *send, double *receive, int64_t count, int64_t communicator, Pending *pending
) noexcept nogil:
    """Start to sum doubles over a registered communicator; return the MPI error code. ``fald_wait`` must follow."""
    global trace_numbers
    pending.error = _start(send, receive, count, communicator, sum_operation, &pending.request)
    if emulated_seconds > 0.0 and pending.error == 0:
        pending.started = _now()
        pending.error = _start(
            &pending.started, &pending.last, 1, communicator, max_operation, &pending.last_request
        )
    trace_numbers += count
    return pending.error


cdef void fald_progress(Pending *pending) noexcept nogil:
    """Let the MPI library move a started message on."""
    cdef int done
    cdef int64_t error = (<test_function_type>test_function)(&pending.request, &done, <void *>status)
    if emulated_seconds > 0.0 and error == 0:
        error = (<test_function_type>test_function)(&pending.last_request, &done, <void *>status)
    if pending.error == 0:
        pending.error = error


cdef int64_t fald_wait(Pending *pending) noexcept nogil:
    """Wait for a started message; return the MPI error code, also one that ``fald_progress`` met."""
    global trace_length, clock_messages, clock_seconds, clock_shortest
    cdef double entered = _now(), left
    cdef int64_t error = 0
    if emulated_seconds > 0.0:
        error = _wait(&pending.last_request)
        left = pending.last + emulated_seconds - _now()
        if error == 0 and left > 0.0:
            _sleep(min(left, emulated_seconds))
    if error == 0:
        error = _wait(&pending.request)
    left = _now()
    if clock_messages == 0 or left - entered < clock_shortest:
        clock_shortest = left - entered
    clock_messages += 1
    clock_seconds += left - entered
    if trace_length < trace_room:
        trace_times[2 * trace_length] = entered
        trace_times[2 * trace_length + 1] = left
        trace_length += 1
    return pending.error if pending.error != 0 else error


PENDING_DOUBLES = sizeof(Pending) // sizeof(double)
"""Room of a started message, as doubles."""


def bind(
    uintptr_t function, uintptr_t start, uintptr_t wait, uintptr_t test, int handle_size, uintptr_t double_handle,
    uintptr_t sum_handle, uintptr_t max_handle,
):
    """Store the addresses of the MPI functions and of the handles they need.

    Parameters
    ----------
    function, start, wait, test : int
        Addresses of ``MPI_Allreduce``, ``MPI_Iallreduce``, ``MPI_Wait`` and ``MPI_Test``.
    handle_size : int
        Size of an MPI handle in bytes: 4 for int handles, 8 for pointers.
    double_handle, sum_handle, max_handle : int
        Addresses where the handles of ``MPI_DOUBLE``, ``MPI_SUM`` and ``MPI_MAX`` are stored.

    Notes
    -----
    The environment variable ``FALD_EMULATED_LATENCY_MS`` is read here: milliseconds by which every message of the
    compiled loop is delayed. It emulates a slow network in scaling studies; results do not change.
    """
    global allreduce_function, iallreduce_function, wait_function, test_function
    global handles_are_ints, double_type, sum_operation, max_operation, emulated_seconds
    emulated_seconds = max(0.0, 1e-3 * float(os.environ.get("FALD_EMULATED_LATENCY_MS") or 0.0))
    allreduce_function = <void *>function
    iallreduce_function, wait_function, test_function = <void *>start, <void *>wait, <void *>test
    handles_are_ints = handle_size == 4
    double_type = _read_handle(double_handle)
    sum_operation = _read_handle(sum_handle)
    max_operation = _read_handle(max_handle)


def register(uintptr_t communicator_handle):
    """Register a communicator by the address of its handle; return the number that compiled code uses for it.

    A number is free again after :func:`release`.
    """
    global n_communicators
    cdef void *handle = _read_handle(communicator_handle)
    cdef int i
    for i in range(n_communicators):
        if communicators[i] == NULL:
            communicators[i] = handle
            return i
    if n_communicators == MAX_COMMUNICATORS:
        raise RuntimeError(f"more than {MAX_COMMUNICATORS} communicators in use at once in one process")
    communicators[n_communicators] = handle
    n_communicators += 1
    return n_communicators - 1


def release(int number):
    """Forget a registered communicator; compiled code must not use its number any more."""
    communicators[number] = NULL


def addresses():
    """Return the addresses of the C functions for compiled code, by name."""
    return {
        "fald_allreduce": <uintptr_t>&fald_allreduce,
        "fald_start": <uintptr_t>&fald_start,
        "fald_progress": <uintptr_t>&fald_progress,
        "fald_wait": <uintptr_t>&fald_wait,
    }


def emulated_latency():
    """Return the seconds by which every message is delayed (0.0: no emulation)."""
    return emulated_seconds


def start_clock():
    """Count messages and the seconds that this rank spends in them from now on."""
    global clock_messages, clock_seconds, clock_shortest
    clock_messages = 0
    clock_seconds = clock_shortest = 0.0


def read_clock():
    """Return the messages since the clock was started, the seconds in them, and the seconds of the shortest."""
    return clock_messages, clock_seconds, clock_shortest


def start_trace(int64_t messages):
    """Record the times of so many further messages; 0 turns the trace off and frees it."""
    global trace_times, trace_room, trace_length, trace_numbers
    free(trace_times)
    trace_times = NULL
    trace_room = trace_length = trace_numbers = 0
    if messages > 0:
        trace_times = <double *>malloc(2 * messages * sizeof(double))
        if trace_times == NULL:
            raise MemoryError(f"a trace of {messages} messages needs {16 * messages} bytes")
        trace_room = messages


def read_trace():
    """Return what was recorded: pairs of times as bytes (float64[messages, 2]), and the doubles sent since the start."""
    return (<char *>trace_times)[: 2 * trace_length * sizeof(double)] if trace_length else b"", trace_numbers
