# Environment of a batch job: modules, Python, threads, compiled code, and the launcher that fits the MPI library.
# Sourced by the scripts beside it; `fald slurm` copies it into the scripts that it writes. Nothing needs an edit here: what
# differs between sites is a variable, set in the job's environment or in a file of sites/ that FALD_SITE names.
#
#   FALD_SITE      shell file that loads modules and sets any of the variables below
#   FALD_PYTHON    Python that fald_hpc is installed for                 (default: python)
#   FALD_MPI       mpich, openmpi, cray or intel                         (default: asked of mpi4py)
#   FALD_LAUNCH    the whole launch command, e.g. "srun --mpi=pmix_v4"   (default: from FALD_MPI and what Slurm offers)
#   FALD_SCRATCH   folder on every node's own disk                       (default: /tmp)

# --- modules ------------------------------------------------------------------------------------------------------
if [ -n "${FALD_SITE:-}" ]; then
    # shellcheck disable=SC1090
    source "$FALD_SITE" || exit 2
fi
FALD_PYTHON=${FALD_PYTHON:-python}
if ! command -v "$FALD_PYTHON" >/dev/null; then
    echo "fald: no $FALD_PYTHON on this node: set FALD_PYTHON, or load a module in FALD_SITE" >&2
    exit 2
fi

# --- threads: a rank is one core's work, whatever the libraries would like -----------------------------------------
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
export MKL_NUM_THREADS=${MKL_NUM_THREADS:-1} NUMBA_NUM_THREADS=${NUMBA_NUM_THREADS:-1}

# --- compiled code on the node's own disk: many nodes that write one folder of a shared filesystem get in each other's
# way. The name is kept between jobs and cannot be guessed, so nobody else on the node can lay code there beforehand.
if [ -z "${NUMBA_CACHE_DIR:-}" ]; then
    fald_name=${XDG_CACHE_HOME:-$HOME/.cache}/fald_hpc/scratch-name
    if [ ! -s "$fald_name" ]; then
        mkdir -p "${fald_name%/*}"
        (umask 077 && od -An -N8 -tx1 /dev/urandom | tr -d ' \n' >"$fald_name.$$" && mv -n "$fald_name.$$" "$fald_name")
        rm -f "$fald_name.$$"
    fi
    NUMBA_CACHE_DIR=${FALD_SCRATCH:-/tmp}/fald-numba-$(id -u)-$(cat "$fald_name")
fi
export NUMBA_CACHE_DIR

# --- launcher -------------------------------------------------------------------------------------------------------
# fald_srun KIND: true where `srun --mpi=KIND` starts a process here; a kind that `srun --mpi=list` shows may lack its library
fald_srun() {
    srun --mpi=list 2>&1 | grep -qw "$1" && srun --mpi="$1" --nodes=1 --ntasks=1 --mem-per-cpu=0 true >/dev/null 2>&1
}

fald_mpiexec() {
    local beside
    beside=$(dirname "$(command -v "$FALD_PYTHON")")/mpiexec
    [ -x "$beside" ] || beside=$(command -v mpiexec) || {
        echo "fald: srun does not understand this MPI library, and no mpiexec is beside Python or on PATH" >&2
        exit 2
    }
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    FALD_LAUNCH="$beside -n $SLURM_NTASKS"
}

# fald_launcher: set FALD_LAUNCH unless the user has
fald_launcher() {
    [ -z "${FALD_LAUNCH:-}" ] || return 0
    if [ -z "${FALD_MPI:-}" ]; then
        case $("$FALD_PYTHON" -P -c 'from fald_hpc import comm; print(comm.library())') in
            *"Open MPI"*) FALD_MPI=openmpi ;;
            *"CRAY MPICH"*) FALD_MPI=cray ;;
            *"Intel(R) MPI"*) FALD_MPI=intel ;;
            *MPICH* | *MVAPICH*) FALD_MPI=mpich ;;
            *) echo "fald: unknown MPI library: set FALD_MPI or FALD_LAUNCH" >&2; exit 2 ;;
        esac
    fi
    local kind
    case $FALD_MPI in
        openmpi) kind=pmix ;;
        cray) kind=cray_shasta ;;
        *) kind=pmi2 ;;
    esac
    if fald_srun "$kind"; then
        # a rank that dies takes the step with it: the others would wait for it until the time limit
        FALD_LAUNCH="srun --mpi=$kind --kill-on-bad-exit=1"
    else
        fald_mpiexec
    fi
}
fald_launcher
echo "fald: $SLURM_NTASKS ranks on ${SLURM_JOB_NODELIST:-?}, start ${SLURM_RESTART_COUNT:-0}, by: $FALD_LAUNCH"
