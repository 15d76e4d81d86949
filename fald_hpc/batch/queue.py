"""What Slurm knows of jobs: state and number of restarts, by ``scontrol``, and by ``sacct`` of those long over."""

import re
import shutil
import subprocess
from dataclasses import dataclass

ANSWER_SECONDS = 20


@dataclass(frozen=True)
class Standing:
    """Where a job, or one job of an array, stands.

    Attributes
    ----------
    state : str
        In Slurm's words, in lower case; "forgotten" where Slurm knows it no more.
    restarts : int or None
        How often it was requeued.
    reason : str
        Why it waits, empty otherwise.
    """

    state: str
    restarts: int | None = None
    reason: str = ""


FORGOTTEN = Standing("forgotten")


def standings(job: str) -> dict[int | None, Standing]:
    """Return where a job stands: under None, or under the task number for the jobs of an array."""
    return parse(_ask(["scontrol", "--oneliner", "show", "job", job])) or accounted(
        _ask(["sacct", "--noheader", "--parsable2", "--allocations", "--jobs", job, "--format=JobID,State"])
    )


def parse(said: str) -> dict[int | None, Standing]:
    """Return the standings in the output of ``scontrol --oneliner show job``."""
    found: dict[int | None, Standing] = {}
    for line in said.splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if "JobState" not in fields:
            continue
        state, reason = fields["JobState"].lower(), fields.get("Reason", "None")
        standing = Standing(
            state, int(fields.get("Restarts", 0)), reason if state == "pending" and reason != "None" else ""
        )
        for task in tasks(fields.get("ArrayTaskId")):
            found[task] = standing
    return found


def accounted(said: str) -> dict[int | None, Standing]:
    """Return the standings in the output of ``sacct --parsable2 --format=JobID,State``."""
    found: dict[int | None, Standing] = {}
    for line in said.splitlines():
        name, _, state = line.partition("|")
        task = re.fullmatch(r"\d+(?:_(?:(\d+)|\[([^]]*)\]))?", name)
        if task and state:
            for number in tasks(task[1] or task[2]):
                found[number] = Standing(state.split()[0].lower())
    return found


def tasks(text: str | None) -> list[int | None]:
    """Return the task numbers of ``"3"`` or ``"0-2,5%4"``; [None] for a job that is no array."""
    if text is None:
        return [None]
    numbers: list[int | None] = []
    for piece in text.partition("%")[0].split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", piece)
        if span:
            numbers += range(int(span[1]), int(span[2] or span[1]) + 1, int(span[3] or 1))
    return numbers


def _ask(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
