"""The Gaussian experiment of the paper's section 10.1 (Table 1, Figure 2): bias of Tr Σ_* by FALD and VR-FALD*.

    mpiexec -n 2 python mpi_jobs/gaussian_table1.py --out runs/table1                 # small: minutes
    srun python mpi_jobs/gaussian_table1.py --setting full --out runs/table1-full     # b = 100, d = 20, 10^7 steps, 100 chains

For each sampler, sharing of noise τ, p_c and step size: the exact squared bias of the trace of the stationary covariance,
and the mean squared error of the chains' own estimates with its standard error. Start, interrupt and start again: every
cell is a run of its own in OUT, and one that has ended is not repeated. Results: OUT/table1.json, and a table.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from fald_hpc import threads

threads.cap(os.environ)  # before NumPy is imported


def main() -> int:
    """Parse, run the cells, print the table on rank 0."""
    from fald_hpc import comm
    from fald_hpc.experiments import gaussian_table1

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--setting", choices=sorted(gaussian_table1.SETTINGS), default="small")
    parser.add_argument("--steps", type=int, help="steps of a chain, instead of the setting's")
    parser.add_argument("--exact-only", action="store_true", help="the exact squared bias alone: seconds")
    options = parser.parse_args()

    world = comm.connect()
    rows = gaussian_table1.run(options.out, options.setting, options.steps, options.exact_only, world)
    if world.rank == 0:
        (options.out / "table1.json").write_text(json.dumps(rows, indent=2) + "\n")
        print(gaussian_table1.text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
