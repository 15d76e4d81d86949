"""The verbs of the communicator, on whatever number of ranks the tests run: the same words as a world of one."""

import os
import time

import numpy as np
import pytest
from problems.stops import asked_to_stop

from fald_hpc import comm, config, execute, launch
from fald_hpc.errors import Stopped, UserError
from fald_hpc.kernels.collectives import PENDING_DOUBLES, allreduce, progress, start, wait

pytestmark = pytest.mark.mpi


def test_all_ranks_are_seen(world):
    assert world.size == launch.read(os.environ).tasks
    assert launch.singleton_trap(os.environ, world.size) is None
    assert world.rank == launch.read(os.environ).rank


def test_share(world):
    value = world.share({"step": 2**40, "name": "τ"} if world.rank == 0 else None)
    assert value == {"step": 2**40, "name": "τ"}


def test_collect_and_gather(world):
    found = world.collect([world.rank, "x" * world.rank])
    parts = world.gather(np.full((world.rank, 2), float(world.rank)))
    if world.rank == 0:
        assert found == [[r, "x" * r] for r in range(world.size)]
        assert [part.shape for part in parts] == [(r, 2) for r in range(world.size)]
        assert all((part == r).all() for r, part in enumerate(parts))
    else:
        assert found is None
        assert parts is None


def test_gather_takes_what_is_not_contiguous(world):
    parts = world.gather(np.arange(12.0).reshape(3, 4)[:, ::2] + world.rank)
    if world.rank == 0:
        assert all((part == np.arange(12.0).reshape(3, 4)[:, ::2] + r).all() for r, part in enumerate(parts))


def test_maximum(world):
    found = world.maximum(np.array([world.rank, -world.rank, 7.0]))
    assert found.tolist() == [world.size - 1, 0.0, 7.0]


def test_total(world):
    found = world.total(np.array([[world.rank, 0.5], [2.0**60, -world.rank]]))
    n = world.size * (world.size - 1) / 2
    assert found.tolist() == [[n, 0.5 * world.size], [world.size * 2.0**60, -n]]


def test_reduction_of_the_compiled_loop(world):
    send, receive = np.array([world.rank + 1.0, 0.5]), np.zeros(2)
    assert allreduce(send, receive, world.number, 0) == 0
    assert receive.tolist() == [world.size * (world.size + 1) / 2, world.size / 2]
    assert allreduce(send, receive, world.number, 1) == 0
    assert receive.tolist() == [world.size, 0.5]


def test_started_reductions_of_the_compiled_loop(world):
    """Several under way at once, with another between; each is waited for in the order in which it was started."""
    if world.size == 1:
        pytest.skip("one rank starts none")
    send = np.array([[world.rank + 1.0, 0.5, k] for k in range(3)])
    receive, pending = np.zeros((3, 3)), np.zeros((3, PENDING_DOUBLES))
    for k in range(3):
        assert start(send[k], receive[k], world.number, pending[k]) == 0
        progress(pending[0])
    largest = np.zeros(1)
    assert allreduce(np.array([float(world.rank)]), largest, world.number, 1) == 0
    assert largest[0] == world.size - 1
    for k in range(3):
        assert wait(pending[k]) == 0
        assert receive[k].tolist() == [world.size * (world.size + 1) / 2, world.size / 2, world.size * k]
    assert wait(pending[0]) == 0  # what has arrived is not waited for again


def test_an_emulated_latency_counts_from_the_start_of_a_message(monkeypatch):
    """What a rank does meanwhile is hidden: the wait ends 0.2 s after the last start, whenever it began."""
    monkeypatch.setenv("FALD_EMULATED_LATENCY_MS", "200")
    slow = comm.connect()
    try:
        if slow.size == 1:
            pytest.skip("one rank starts none")
        receive, pending = np.zeros(1), np.zeros(PENDING_DOUBLES)
        slow.maximum(np.zeros(1))
        begun = time.monotonic()
        assert start(np.ones(1), receive, slow.number, pending) == 0
        first, last = slow.maximum(np.array([-begun, begun]))
        time.sleep(0.1)
        progress(pending)
        assert wait(pending) == 0
        took = time.monotonic() - last
        assert receive[0] == slow.size
        # 0.3 s would be a sleep that begins at the wait; the upper limit is wide for cores that others use
        assert 0.199 <= took <= 0.29 + 5.0 * (last + first)
    finally:
        slow.free()
        monkeypatch.delenv("FALD_EMULATED_LATENCY_MS")
        comm.connect().free()  # without it again


def test_on_one_node(world):
    assert world.on_one_node()


def test_an_error_of_one_rank_is_everyones(world):
    last = world.size - 1
    error = UserError(f"rank {world.rank} found nothing") if world.rank == last else None
    with pytest.raises(UserError, match=f"rank {last} found nothing"):
        world.together(error)


def test_a_fault_of_one_rank_is_everyones(world):
    last = world.size - 1
    error = ZeroDivisionError("oh") if world.rank == last else None
    with pytest.raises(ZeroDivisionError if world.rank == last else comm.RankError, match="oh"):
        world.together(error)


def test_no_error_is_no_error(world):
    world.together(None)


def test_split_into_even_and_odd(world):
    part = world.split(world.rank % 2)
    assert part.size == len(range(world.rank % 2, world.size, 2))
    assert part.rank == world.rank // 2
    receive = np.zeros(1)
    assert allreduce(np.ones(1), receive, part.number, 0) == 0
    assert receive[0] == part.size
    part.free()


def test_a_users_messages_do_not_meet_ours(world):
    """The communicator is a duplicate: a pending message of the user's own stays the user's."""
    mpi = comm.import_mpi()
    if world.size == 1:
        pytest.skip("one rank has nobody to send to")
    sent = np.array([float(world.rank)])
    request = mpi.COMM_WORLD.Isend(sent, dest=(world.rank + 1) % world.size, tag=7)
    world.gather(np.zeros(3))
    received = np.zeros(1)
    mpi.COMM_WORLD.Recv(received, source=(world.rank - 1) % world.size, tag=7)
    request.Wait()
    assert received[0] == (world.rank - 1) % world.size


def test_runs_one_after_another_use_no_further_slots():
    """A hundred communicators, none at an address of an earlier one, each released: far more than compiled code knows at once."""
    mpi = comm.import_mpi()
    kept, numbers = [], set()
    for _ in range(100):
        one = comm.connect()
        numbers.add(getattr(one, "number", 0))
        one.free()
        kept.append(mpi.COMM_WORLD.Dup())
    for duplicate in kept:
        duplicate.Free()
    assert len(numbers) == 1


def test_stopped_runs_release_their_chain_groups(world, place):
    """Compiled code knows as many communicators after them as before."""

    def number():
        one = comm.connect()
        found = getattr(one, "number", 0)
        one.free()
        return found

    before = number()
    groups = 2 if world.size % 2 == 0 else 1
    cfg = config.load("titanic", ["run.steps=4000", "run.segment_steps=61", f"run.chain_groups={groups}"])
    for _ in range(3):
        with asked_to_stop(1), pytest.raises(Stopped):
            execute.execute(cfg, place / "run", comm=world, resume=True)
    assert number() == before
