"""Hand a script to ``sbatch``."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from fald_hpc.errors import UserError

ANSWER_SECONDS = 60

# What a shell inside a job has would become the new job's, and win over the script's own lines.
FOREIGN = re.compile(r"^(SBATCH_|SLURM_(?!CONF$))")


def submit(script: Path) -> str:
    """Submit a script and return the job's number.

    Raises
    ------
    UserError
        There is no sbatch, or it refuses; its own words are passed on.
    """
    if shutil.which("sbatch") is None:
        raise UserError(f"no sbatch on this machine: {script} is written; submit it on the cluster")
    environ = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    try:
        done = subprocess.run(
            ["sbatch", "--parsable", str(script)], env=environ, capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"sbatch has not answered for {ANSWER_SECONDS} s: squeue shows whether it took {script}"
        ) from None
    if done.returncode != 0:
        said = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise UserError(f"sbatch refuses {script}: {said or 'it says nothing'}")
    return done.stdout.strip().partition(";")[0]
