"""A study as Slurm jobs: one job for each number of ranks, from the templates in ``slurm/``."""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fald_hpc.errors import UserError


def template(kind: str) -> Path:
    """Return the template of a strong or weak study, beside the working folder or installed with the package.

    Raises
    ------
    UserError
        If there is none.
    """
    name = f"scaling-{kind}.sbatch"
    here = Path(__file__).resolve().parents[1]
    for folder in (Path("slurm"), here / "batch" / "shell", here.parent / "slurm"):
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"no slurm/{name} here or in the package: copy the folder slurm/ of the sources to this folder")


def jobs(
    mode: str, kind: str, source: str, ranks: Sequence[int], fixed: str | None, folder: Path, options: Sequence[str]
) -> list[str]:
    """Return the sbatch commands of a study, submitted if ``mode`` is "submit", else only shown.

    The template passes its arguments on to ``mpi_jobs/strong_scaling.py`` or ``weak_scaling.py``.

    Raises
    ------
    UserError
        If ``mode`` is neither "print" nor "submit", a template or sbatch is missing, or sbatch refuses.
    """
    if mode not in ("print", "submit"):
        raise UserError(f"--slurm {mode}: give print or submit")
    script = template(kind)
    lines = []
    for count in ranks:
        more = [] if fixed is None else ["--fixed", fixed]
        command = ["sbatch", f"--ntasks={count}", f"--job-name=fald-{kind}-{count}", str(script), source]
        command += ["--out", str(folder), *more, *options]
        if mode == "print":
            lines.append(shlex.join(command))
            continue
        if shutil.which("sbatch") is None:
            raise UserError("no sbatch on PATH: submit from a login node of the cluster, or use --slurm print")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise UserError(f"sbatch refused the job of {count} ranks: {(done.stderr or done.stdout).strip()}")
        lines.append(f"{count} ranks: {done.stdout.strip()}")
    return lines
