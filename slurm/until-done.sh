# fald_until_done COMMAND ...: runs the command on all ranks and, when the run has saved its state and stopped (exit code
# 75), puts this job back into the queue. The same script then continues it, until the steps are done.
#
#   FALD_MAX_RESTARTS   restarts of a job before it gives up          (default: 100)
#   FALD_MAX_CRASHES    of these, after a rank or a node was lost     (default: 3)
#   FALD_SAVE_SECONDS   to stop and save in, once told to             (default: 60)
#
# Who tells the run to stop:
# - the time limit: Slurm sends SIGUSR1 to this shell (--signal=B:USR1@...), which passes it on to the launcher, and srun and
#   Open MPI's mpiexec to the ranks;
# - scontrol requeue, preemption and scancel: Slurm sends SIGTERM to the ranks itself, and decides what becomes of the job.

fald_until_done() {
    local told="" code=0 again child
    read -ra launch <<<"$FALD_LAUNCH"
    "${launch[@]}" "$@" &
    child=$!
    trap 'told=USR1; again=1; kill -USR1 "$child" 2>/dev/null; fald_patience "$child" &' USR1
    trap 'told=TERM; again=1' TERM
    while :; do
        again=""
        wait "$child"
        # a trap ends wait early; 127: the child had ended before it, and its code is known
        local found=$?
        [ "$found" = 127 ] || code=$found
        [ -n "$again" ] || break
    done

    if [ "$told" = TERM ]; then
        echo "fald: Slurm has ended this start (exit code $code)"
        exit "$code"
    fi
    case $code in
        0)
            return 0
            ;;
        75)
            fald_requeue "the run has saved its state"
            ;;
        1 | 2)
            echo "fald: exit code $code: not tried again" >&2
            ;;
        *)
            # a run that is still starting ends by the signal, and one whose ranks hang by fald_patience
            if [ "$told" = USR1 ]; then
                fald_requeue "the run could not save its state (exit code $code) and starts from the last one"
            else
                echo "crash" >>"$(fald_crashes)"
                if [ "$(wc -l <"$(fald_crashes)")" -gt "${FALD_MAX_CRASHES:-3}" ]; then
                    echo "fald: a rank was lost again (exit code $code): not tried again" >&2
                else
                    fald_requeue "a rank was lost (exit code $code)"
                fi
            fi
            ;;
    esac
    exit "$code"
}

# fald_patience PID: end a launcher whose run has not stopped in time, so that the job is not over with the time limit
fald_patience() {
    sleep "${FALD_SAVE_SECONDS:-60}"
    kill -TERM "$1" 2>/dev/null && sleep 5 && kill -KILL "$1" 2>/dev/null
}

fald_crashes() {
    echo "${SLURM_SUBMIT_DIR:-.}/fald-$SLURM_JOB_ID.crashes"
}

fald_requeue() {
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "${FALD_MAX_RESTARTS:-100}" ]; then
        echo "fald: $1, but this job was started $((SLURM_RESTART_COUNT + 1)) times (FALD_MAX_RESTARTS): submit it again" >&2
        return
    fi
    echo "fald: $1; requeued"
    scontrol requeue "$SLURM_JOB_ID" || return
    sleep 30 # Slurm ends this shell meanwhile
}
