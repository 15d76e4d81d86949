"""Runs on some of the ranks of a job."""

from contextlib import nullcontext

from fald_hpc import execute
from fald_hpc.errors import Stopped
from problems.stops import asked_to_stop


def run_on(world, count, cfg, folder, stop_after=None, asked=0, **more):
    """Run a config on the first ranks; all ranks call it. Return whether the run was stopped.

    Parameters
    ----------
    stop_after : int, optional
        Segments after which rank ``asked`` is asked to stop.
    **more
        For ``execute``.
    """
    group = world.split(int(world.rank < count))
    stopped = False
    if world.rank < count:
        with asked_to_stop(stop_after) if stop_after is not None and world.rank == asked else nullcontext():
            try:
                execute.execute(cfg, folder, comm=group, **more)
            except Stopped:
                stopped = True
    group.free()
    flags = world.maximum([float(stopped)])
    assert world.rank >= count or bool(flags[0]) == stopped, "all ranks must stop together"
    assert not flags[0] or stop_after is not None, "nobody asked for a stop"
    return bool(flags[0])
