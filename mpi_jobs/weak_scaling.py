"""A problem that grows with the number of ranks: records of a weak scaling study.

    mpiexec -n 4 python mpi_jobs/weak_scaling.py titanic --fixed rows --ranks 1,2,4 --out scaling/titanic-weak
    srun python mpi_jobs/weak_scaling.py study.toml --fixed chains --out scaling/study-weak

Each rank always hosts as many clients as the config has; --fixed says what else stays the same (fald_hpc.scaling.grow).
Appends to OUT/study.jsonl; ``fald scale show OUT`` prints the table and draws the figures.
"""

import sys

import strong_scaling  # the script beside this one

if __name__ == "__main__":
    sys.exit(strong_scaling.main("rows", __doc__))
