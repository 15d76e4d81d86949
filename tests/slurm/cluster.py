"""A real Slurm on one machine: munged, slurmctld and one slurmd a node, all of them child processes in one folder.

Nothing of the machine's own configuration is read or changed, no init system is needed, and no port is fixed. Several
nodes on one host are what Slurm calls multiple slurmd support: the nodes share name, address and file system.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel")
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

CONFIG = """\
ClusterName=onemachine
SlurmctldHost=localhost
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
TmpFS={place}/tmp-%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2,sched_min_interval=100000
DefMemPerCPU=500
JobRequeue=1
ReturnToService=2
KillWait=10
SlurmdTimeout=10
MinJobAge=3600
MpiDefault=none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=batch Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=10
"""


def missing() -> str | None:
    """Return why no Slurm can be started here, None where it can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=SEARCH) is None]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)} not found): apt-get install slurm-wlm munge"
    return None


class Cluster:
    """The processes of a Slurm, their folder, and what tests ask of it.

    Parameters
    ----------
    place : Path
        Empty folder for configuration, state, spool and logs.
    nodes : int
        Number of slurmd; each offers ``cpus`` processors whatever the machine has.
    cpus : int
        Processors a node.
    """

    def __init__(self, place: Path, nodes: int = 3, cpus: int = 2) -> None:
        self.place, self.cpus = place, cpus
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.config = place / "slurm.conf"
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "PMI", "OMPI_COMM", "HYDI"))
        }
        self.environ |= {"SLURM_CONF": str(self.config), "PATH": SEARCH}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all processes and wait until all nodes are idle."""
        (self.place / "state").mkdir()
        # SlurmUser and SlurmdUser are whoever runs the tests: jobs can then be of no other user, which is enough here.
        listening = [_free_port() for _ in range(len(self.names) + 1)]
        nodes = "\n".join(
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} Sockets=1 "
            f"CoresPerSocket={self.cpus} ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN"
            for name, port in zip(self.names, listening[1:], strict=True)
        )
        self.config.write_text(
            CONFIG.format(place=self.place, controller=listening[0], user=getpass.getuser(), nodes=nodes)
        )
        key = self.place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        at = lambda name: str(self.place / name)  # noqa: E731
        self._start(
            "munged", "--foreground", "--force", f"--socket={at('munge.socket')}", f"--key-file={key}",
            f"--log-file={at('munged.log')}", f"--pid-file={at('munged.pid')}", f"--seed-file={at('munged.seed')}",
        )  # fmt: skip
        wait_for(lambda: (self.place / "munge.socket").exists(), 20, "munged's socket")
        self._start("slurmctld", "-D", "-f", str(self.config))
        for name in self.names:
            self.start_node(name)
        wait_for(lambda: self.node_states() == dict.fromkeys(self.names, "idle"), 60, "idle nodes")

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        # nodes share this machine's folders: what a node believes to be its own must be told apart (PMIx insists)
        for folder in ("spool", "tmp"):
            (self.place / f"{folder}-{name}").mkdir(exist_ok=True)
        self._start("slurmd", "-D", "-N", name, "-f", str(self.config), label=name)

    def stop(self) -> None:
        """End all jobs and all processes, by their ids."""
        with contextlib.suppress(Exception):
            self.cancel_all()
        for label in reversed(list(self.processes)):
            process = self.processes.pop(label)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self.ours():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def cancel_all(self) -> None:
        """Cancel all jobs and wait until the nodes are free."""
        if self.jobs():
            self.command("scancel", "--user", getpass.getuser())
            wait_for(lambda: not self.jobs(), 30, "no jobs")

    def _start(self, program: str, *arguments: str, label: str | None = None) -> None:
        path = shutil.which(program, path=SEARCH)
        assert path is not None
        name = label or program
        with open(self.place / f"{name}.out", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [path, *arguments], env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def ours(self, node: str | None = None) -> Iterator[int]:
        """Yield the processes that run under this configuration (on one node): step daemons and tasks."""
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                environ = (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if f"SLURM_CONF={self.config}".encode() not in environ:
                continue
            if node is None or f"SLURMD_NODENAME={node}".encode() in environ or self._daemon_of(command, folder, node):
                yield int(folder.name)

    def _daemon_of(self, command: bytes, folder: Path, node: str) -> bool:
        """Return True for a step daemon of a node: its open files lie in the node's spool folder."""
        if b"slurmstepd" not in command:
            return False
        spool = str(self.place / f"spool-{node}")
        with contextlib.suppress(OSError):
            if os.readlink(folder / "cwd").startswith(spool):
                return True
            opened = [os.readlink(path) for path in (folder / "fd").iterdir()]
            return any(path.startswith((spool, str(self.place / f"slurmd-{node}.log"))) for path in opened)
        return False

    # -- what tests ask ---------------------------------------------------------------------------------------------

    def command(self, *arguments: object, check: bool = True, cwd: Path | None = None) -> str:
        """Run a program under this Slurm, by default in its folder, and return what it printed."""
        done = subprocess.run(
            [str(word) for word in arguments],
            env=self.environ, capture_output=True, text=True, timeout=300, cwd=cwd or self.place,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return str(done.stdout)

    def node_states(self) -> dict[str, str]:
        """Return the state of every node, in Slurm's words."""
        lines = self.command("sinfo", "-h", "-N", "-o", "%N %t", check=False).split("\n")
        return dict(line.split(maxsplit=1) for line in lines if line)

    def jobs(self) -> dict[str, str]:
        """Return the jobs that are not over yet."""
        lines = self.command("squeue", "-h", "-r", "-o", "%A %T", check=False).split("\n")
        return dict(line.split(maxsplit=1) for line in lines if line)

    def show(self, job: str) -> dict[str, str]:
        """Return what scontrol says of a job."""
        return dict(re.findall(r"(\w+)=(\S*)", self.command("scontrol", "show", "job", job)))

    def submit(self, script: Path, *options: str, cwd: Path) -> str:
        """Submit a script and return the job's number."""
        return self.command("sbatch", "--parsable", *options, script, cwd=cwd).strip()

    def wait(self, job: str, seconds: float = 240) -> dict[str, str]:
        """Wait until a job is over and return what scontrol says of it; the job is cancelled if it is not."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
        try:
            wait_for(lambda: self.show(job)["JobState"] in over, seconds, f"the end of job {job}")
        except AssertionError:
            self.command("scancel", job, check=False)
            raise
        return self.show(job)

    def crash_node(self, name: str) -> int:
        """Kill a node's slurmd, its step daemons and its tasks at once, as a power cut does; return how many."""
        self.processes.pop(name).kill()
        victims = list(self.ours(name))
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(victims)

    def ranks(self, job: str) -> list[int]:
        """Return the process ids of a job's ranks: Python processes of a step that srun started."""
        found = []
        for pid in self.ours():
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if {f"SLURM_JOB_ID={job}".encode(), b"SLURM_STEP_NUM_TASKS=4"} <= set(environ) and b"fald_hpc" in command:
                    found.append(pid)
        return sorted(found)


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} within {seconds:g} s"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
