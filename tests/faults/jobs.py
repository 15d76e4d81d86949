"""Jobs as a user starts them, that cannot outlive their test: found by a mark in their environment, wherever they went."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fald_hpc import launch
from fald_hpc.cli.verify import find_mpiexec

MARK = "FALD_TEST_JOB"
LONG = bool(os.environ.get("FALD_LONG"))

# a run of a second or two whose every mechanism works: minibatches, full chunks of draws, then the cap and two doublings
WORK = [
    "quickstart-regression", "--chains", "16", "--steps", "60000", "--set", "sampler.comm_prob=0.2",
    "--set", "sampler.batch_size=2", "--set", "output.draws_megabytes=2.2", "--set", "run.segment_steps=1500",
    "--checkpoint-every", "0.1", "--quiet",
]  # fmt: skip


class Hang(AssertionError):
    """A job did not end in time."""


def _as_in_a_terminal() -> None:
    """Let a job heed Ctrl-C, which shells make their background jobs ignore, and with them all that is started there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Job:
    """A job of one or more ranks, running.

    Parameters
    ----------
    command : sequence of str
        Program and arguments of one rank; ``fald run ...`` without a program.
    ranks : int
        1: no launcher.
    folder : Path
        Where its output goes.
    programs : sequence of commands, optional
        One for each rank instead, for ranks that differ.
    """

    def __init__(
        self,
        command: Sequence[Any],
        ranks: int,
        folder: Path,
        programs: Sequence[Sequence[Any]] | None = None,
        **environ: str,
    ) -> None:
        self.ranks_asked, self.mark = ranks, uuid.uuid4().hex
        clean = launch.clean(os.environ)
        clean |= launch.permissions(clean, ranks, len(os.sched_getaffinity(0)), os.geteuid() == 0)
        self.environ = {**clean, MARK: self.mark, **environ}
        if programs is not None:
            parts = [["-n", "1", *map(str, program)] for program in programs]
            words = [find_mpiexec(), *parts[0], *(word for part in parts[1:] for word in (":", *part))]
        else:
            words = [*([find_mpiexec(), "-n", str(ranks)] if ranks > 1 else []), *map(str, command)]
        folder.mkdir(parents=True, exist_ok=True)
        self._out, self._err = folder / f"{self.mark}.out", folder / f"{self.mark}.err"
        self.begun = time.monotonic()
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(
                words, env=self.environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, cwd=folder,
                preexec_fn=_as_in_a_terminal,
            )  # fmt: skip

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    @property
    def out(self) -> str:
        """What the job has printed."""
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        """What the job has said on standard error."""
        return self._err.read_text(errors="replace")

    def processes(self) -> dict[int, dict[str, str]]:
        """Return all living processes of this job with their environments, wherever they hang in the tree."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
                    environ = dict(word.partition("=")[::2] for word in words)
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if environ.get(MARK) == self.mark and state not in "ZX":
                        found[int(entry.name)] = environ
        return found

    def ranks(self) -> dict[int, int]:
        """Return the process of every rank that is there yet."""
        found: dict[int, int] = {}
        # a rank's own children, between fork and exec, look like it; they have higher numbers
        for pid, environ in sorted(self.processes().items()):
            rank = environ.get("OMPI_COMM_WORLD_RANK", environ.get("PMI_RANK"))
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                if "python" in words.split("\0")[0] and (rank is not None or self.ranks_asked == 1):
                    found.setdefault(int(rank or 0), pid)
        return found

    def kill(self, rank: int, number: int) -> bool:
        """Send a signal to a rank, or to the launcher (rank -1); return whether there was one."""
        pid = self.process.pid if rank < 0 else self.ranks().get(rank)
        if pid is None or (rank < 0 and self.process.poll() is not None):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def until(self, there: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for something to be the case while the job runs."""
        end = time.monotonic() + seconds
        while not there():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Hang(f"it never came to be so; exit code {self.process.poll()}\n{self.err}")
            time.sleep(0.02)

    def until_sampling_begins(self, folder: Path) -> None:
        """Wait for the state of the start."""
        self.until(lambda: (folder / "checkpoint" / "newest").exists(), 90)

    def until_sampling(self, folder: Path) -> None:
        """Wait for the first checkpoint after the start."""
        self.until(lambda: (folder / "checkpoint" / "previous").exists())

    def end(self, seconds: float) -> int:
        """Wait for the job to end by itself, all its processes; return the exit code."""
        begun = time.monotonic()
        try:
            code = self.process.wait(seconds)
            while self.processes():
                if time.monotonic() - begun > seconds:
                    raise subprocess.TimeoutExpired("", seconds)
                time.sleep(0.05)
        except subprocess.TimeoutExpired:
            alive = {pid: _words(pid) for pid in self.processes()}
            self.destroy()
            raise Hang(f"after {seconds} s there are still {alive}\n{self.out}{self.err}") from None
        return code

    def destroy(self) -> None:
        """End every process of this job, and of this job alone."""
        for _ in range(50):
            alive = self.processes()
            if not alive:
                break
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        assert not self.processes(), "processes that cannot be killed"


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")[:200]
    return ""


def fald(*arguments: Any) -> list[Any]:
    """Return the command ``fald ...``."""
    return [sys.executable, "-m", "fald_hpc", *arguments]


def finish(command: Sequence[Any], ranks: int, folder: Path, seconds: float = 120.0, **environ: str) -> Job:
    """Run a job to its end, which must be a success."""
    with Job(command, ranks, folder, **environ) as job:
        code = job.end(seconds)
        assert code == 0, f"exit code {code}\n{job.out}{job.err}"
    return job


def messages(job: Job) -> list[str]:
    """Return the sentences of fald itself on standard error; launchers add their own words."""
    return [line for line in job.err.splitlines() if line.startswith("fald: ")]
