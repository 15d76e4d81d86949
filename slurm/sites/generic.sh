# A site file: copy it, edit it, and name it in FALD_SITE (or `fald slurm --site FILE`). It is sourced by every job before
# anything else, on the first node; what it exports reaches all ranks through srun.

# 1. Modules, where Python or MPI come from them. Without modules, delete the two lines.
# module purge
# module load python openmpi

# 2. The Python that fald_hpc is installed for. An absolute path: a job does not see what your login shell activates.
FALD_PYTHON=${FALD_PYTHON:-$HOME/fald/bin/python}

# 3. Only where the choice of slurm/env.sh does not fit (it asks mpi4py for the library and Slurm for what it can start).
# FALD_MPI=mpich                      # mpich, openmpi, cray or intel
# FALD_LAUNCH="srun --mpi=pmix_v4 --kill-on-bad-exit=1"

# 4. A disk of each node's own, for compiled code.
# FALD_SCRATCH=/local/scratch
