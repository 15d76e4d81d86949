# Worked example: Debian 12 with its own slurm-wlm (22.05), no modules. Tried on one machine with three slurmd.
#
#   apt-get install slurm-wlm munge                     on all nodes
#   apt-get install openmpi-bin libpmix-dev             Debian's Open MPI 4.1.4; libpmix-dev for srun --mpi=pmix
#   python3 -m venv ~/fald && ~/fald/bin/pip install fald-hpc        no MPI extra: mpi4py finds the system's Open MPI
FALD_PYTHON=${FALD_PYTHON:-$HOME/fald/bin/python}

# For Debian's MPICH 4.0.2 instead (apt-get install mpich): mpi4py's wheel looks for MPICH under the name that all MPICH
# builds but Debian's give it, so make that name once and put its folder on the path of libraries:
#   mkdir -p ~/mpich-abi && ln -s /usr/lib/x86_64-linux-gnu/libmpich.so.12 ~/mpich-abi/libmpi.so.12
# export LD_LIBRARY_PATH=$HOME/mpich-abi MPI4PY_MPIABI=mpich
