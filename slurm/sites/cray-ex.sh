# Worked example: an HPE Cray EX with cray-mpich and Slingshot. Written from the vendor's and centres' documentation; NOT
# tried. What differs from generic.sh: the compiler wrapper builds mpi4py once, and Slurm starts ranks by cray_shasta.
#
#   module load PrgEnv-gnu cray-python cray-mpich
#   python -m venv $HOME/fald && MPICC=cc $HOME/fald/bin/pip install --no-binary=mpi4py fald-hpc
module load PrgEnv-gnu cray-python cray-mpich
FALD_PYTHON=${FALD_PYTHON:-$HOME/fald/bin/python}
FALD_MPI=cray

# /tmp of a node is memory there, and private to it.
FALD_SCRATCH=${FALD_SCRATCH:-/tmp}
