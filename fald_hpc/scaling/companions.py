"""Costs while the other cores are busy too: ranks share memory bandwidth, clock speed and, at times, a physical core.

One core measured alone is faster than one of a full node. So the pieces of :mod:`fald_hpc.scaling.calibrate` are
measured beside other processes that do the same without any messages.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fald_hpc import launch, threads


@contextmanager
def busy(source: str, overrides: Sequence[str], count: int) -> Iterator[None]:
    """Keep so many cores busy with a configuration's own work."""
    environ = launch.clean(os.environ)
    threads.cap(environ)
    command = [sys.executable, "-m", "fald_hpc.scaling.companions", json.dumps([source, list(overrides)])]
    running = [subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for one in running:
            assert one.stdout is not None
            one.stdout.readline()
        yield
    finally:
        for one in running:
            one.terminate()
            one.wait()


def main(argument: str) -> None:
    """Work until terminated."""
    from fald_hpc import config
    from fald_hpc.scaling import calibrate

    source, overrides = json.loads(argument)
    study = calibrate.study_of(config.load(source, overrides))
    runner = calibrate.largest(study)
    print("ready", flush=True)
    # an orphan ends by itself
    while os.getppid() != 1:
        runner.run()


if __name__ == "__main__":
    main(sys.argv[1])
