"""Batch scripts without a Slurm: times, grids, what fits, the text, and the shell parts with launchers that are fakes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fald_hpc.batch import duration, fit, grid, ledger, queue, script, submit
from fald_hpc.batch.job import Job, option
from fald_hpc.batch.offers import Offer, parse
from fald_hpc.errors import UserError

ROOT = Path(__file__).parents[2]
in_repository = pytest.mark.skipif(not (ROOT / "slurm" / "sample.sbatch").exists(), reason="needs the sources")


def job(**changes):
    given = {
        "name": "fald-titanic", "source": "titanic", "out": Path("/data/my runs/titanic"), "ranks": 4, "nodes": 2,
        "seconds": 600, "memory": 500, "python": "/opt/fald/bin/python",
    }  # fmt: skip
    return Job(**{**given, **changes})


# -- times ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("1:30", 90), ("2:00:00", 7200), ("1-12", 129600), ("1-12:30", 131400), ("2-00:00:01", 172801)],
)
def test_times_as_slurm_takes_them(text, seconds):
    assert duration.parse(text) == seconds
    assert duration.parse(duration.slurm(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "0", "1:2:3:4", "two hours", "-1", "1-", "1:-3", "1.5", "x-1"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UserError, match="--time"):
        duration.parse(text)


# -- grids ---------------------------------------------------------------------------------------------------------


def test_a_grid_is_all_combinations_the_last_key_running_fastest():
    points = grid.points(["sampler.comm_prob=0.1,0.2", "sampler.name=fald,vr_fald_star"])
    assert [point.name for point in points] == [
        "comm_prob=0.1,name=fald", "comm_prob=0.1,name=vr_fald_star",
        "comm_prob=0.2,name=fald", "comm_prob=0.2,name=vr_fald_star",
    ]  # fmt: skip
    assert points[1].overrides == ("sampler.comm_prob=0.1", "sampler.name=vr_fald_star")


def test_keys_that_end_alike_keep_their_names():
    assert grid.points(["a.x=1", "b.x=2"])[0].name == "a.x=1,b.x=2"


@pytest.mark.parametrize(
    "texts",
    [["comm_prob"], ["a=1,1"], ["a=1", "a=2"], ["a="], ["a=1,,2"], ["a=$(rm)"], ["a=1;2"],
     ["a=" + ",".join(map(str, range(40))), "b=" + ",".join(map(str, range(40)))]],
)  # fmt: skip
def test_what_is_no_grid_is_refused(texts):
    with pytest.raises(UserError, match="--array"):
        grid.points(texts)


# -- what fits -----------------------------------------------------------------------------------------------------

OFFERS = parse("small*|10|4|8000|1:00:00\nlarge|2|64|256000|2-00:00:00\nlarge|1|128|512000|2-00:00:00\n")


def test_offers_of_sinfo():
    assert OFFERS[0] == Offer("small", True, 10, 4, 8000, 3600.0)
    assert parse("a|1|4+|900|infinite\n")[0].seconds == float("inf")


@pytest.mark.parametrize(
    ("changes", "partition"),
    [({}, None), ({"ranks": 40, "nodes": 10}, None), ({"ranks": 192, "nodes": 3}, "large"), ({"memory": 4000}, None)],
)
def test_what_fits(changes, partition):
    fit.cluster(job(**changes), OFFERS, partition)


@pytest.mark.parametrize(
    ("changes", "partition", "words"),
    [
        ({}, "huge", "--partition huge: this cluster has large, small"),
        ({"seconds": 7200}, None, "--time 02:00:00 is more than partition small allows (01:00:00)"),
        ({"nodes": 11, "ranks": 11}, None, "--nodes 11: partition small has 10"),
        ({"ranks": 12}, None, "6 ranks a node: partition small has 4 processors a node on 2 of its nodes; "
                              "give --nodes 3 or more"),
        ({"ranks": 80}, None, "8 ranks fit on these"),
        ({"ranks": 128, "nodes": 1, "memory": 5000}, "large", "give --nodes 2 or more"),
        ({"ranks": 2, "memory": 9000}, None, "give more ranks"),
        ({"ranks": 8, "memory": 4000}, None, "give --nodes 4 or more"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_would(changes, partition, words):
    with pytest.raises(UserError, match=re.escape(words)):
        fit.cluster(job(**changes), OFFERS, partition)


def test_a_cluster_without_a_default_partition():
    with pytest.raises(UserError, match="give --partition, one of large"):
        fit.cluster(job(), OFFERS[1:], None)


def test_idle_nodes_are_refused():
    with pytest.raises(UserError, match="--nodes 5 for 4 ranks"):
        fit.layout(job(nodes=5))


def test_starts_that_a_run_takes():
    assert fit.starts(job(seconds=600), 100.0) == 1
    assert fit.starts(job(seconds=600), 1000.0) == 2
    with pytest.raises(UserError, match="leaves no time to sample"):
        fit.starts(job(seconds=40), 1.0)
    with pytest.raises(UserError, match="or more, or more ranks") as refused:
        fit.starts(job(seconds=600), 1e6)
    enough = re.search(r"give --time (\S+)", str(refused.value))[1]
    assert fit.starts(job(seconds=duration.parse(enough)), 1e6) <= fit.MOST_STARTS


# -- the text ------------------------------------------------------------------------------------------------------


def lines_for_sbatch(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_lines_for_sbatch():
    found = lines_for_sbatch(script.text(job(options=("--partition=fast",))))
    assert {
        "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--mem-per-cpu=500M", "--time=00:10:00", "--requeue",
        "--signal=B:USR1@60", "--open-mode=append", "--partition=fast",
    } <= set(found)  # fmt: skip
    assert not [line for line in found if line.startswith("--array")]
    assert "--array=0-1" in lines_for_sbatch(script.text(job(points=grid.points(["run.seed=1,2"]))))


def test_everything_for_sbatch_stands_before_the_first_command():
    text = script.text(job(options=("--account=a",)), ["a note"])
    body = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert text.index("--account=a") < text.index(body[0])
    assert text.startswith("#!/bin/bash\n")


@pytest.mark.parametrize("points", [[], ["run.seed=1,2", "sampler.name=fald"]])
def test_the_script_is_shell(points, tmp_path):
    path = tmp_path / "job.sbatch"
    script.write(path, script.text(job(points=grid.points(points), source="/my data/it's.toml")))
    assert subprocess.run(["bash", "-n", path]).returncode == 0
    assert os.access(path, os.X_OK)


@pytest.mark.parametrize("value", ["a b", "a\nb", "a#b", "a'b"])
def test_options_stay_within_their_line(value):
    with pytest.raises(UserError, match="--account"):
        option("account", value)


def test_a_file_of_someone_else_is_not_overwritten(tmp_path):
    path = tmp_path / "job.sbatch"
    path.write_text("precious")
    with pytest.raises(UserError, match="give another --script"):
        script.write(path, script.text(job()))
    assert path.read_text() == "precious"


# -- the shell parts, with fakes in the place of Slurm and MPI --------------------------------------------------------


@pytest.fixture
def fakes(tmp_path):
    """Return a runner of scripts whose srun, scontrol and Python are fakes that note how they were called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    notes = tmp_path / "calls"
    notes.touch()

    def fake(name, body):
        path = programs / name
        path.write_text(f"#!/bin/bash\nprintf '%s\\n' \"{name} $*\" >>{shlex.quote(str(notes))}\n{body}\n")
        path.chmod(0o755)
        return str(path)

    fake("scontrol", 'kill -TERM "$PPID"')
    # the patience with a run that was told to stop (60) must outlast the run's own answer on a busy machine
    fake("sleep", '[ "$1" = 60 ] && exec /bin/sleep 5; exec /bin/sleep 0.1')
    python = fake("python", 'case $2 in -c) echo "MPICH Version: 4" ;; esac')
    fake("mpiexec", "exit ${CODE:-0}")

    def runner(text, srun='[ "$1" = --mpi=list ] && echo pmi2; exit 0', wait=True, **environ):
        fake("srun", srun)
        path = tmp_path / "job.sbatch"
        path.write_text(text)
        kept = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}
        child = subprocess.Popen(
            ["bash", path], env={**kept, "SLURM_SUBMIT_DIR": str(tmp_path), "FALD_PYTHON": python, **environ},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        )  # fmt: skip
        if not wait:
            return child
        said, _ = child.communicate(timeout=60)
        return child.returncode, said, notes.read_text().splitlines()

    return runner


RUN = """case $* in
    --mpi=list) echo 'MPI plugin types are...' >&2; echo pmi2 >&2 ;;
    *fald_hpc*) exit {code} ;;
esac"""


def test_a_run_that_is_done_ends_the_job(fakes):
    code, said, calls = fakes(script.text(job(overrides=["run.seed=2"])), RUN.format(code=0))
    assert code == 0
    assert "start 0, by: srun --mpi=pmi2 --kill-on-bad-exit=1" in said
    run = next(line for line in calls if "fald_hpc run" in line)
    assert run.startswith("srun --mpi=pmi2 --kill-on-bad-exit=1 ")
    assert run.endswith(" -P -m fald_hpc run titanic --set run.seed=2 --out /data/my runs/titanic --resume --time-limit auto")
    assert not [line for line in calls if line.startswith("scontrol")]


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [(75, 0, True), (75, 99, True), (75, 100, False), (1, 0, False), (2, 0, False), (137, 0, True)],
)
def test_what_is_requeued(fakes, code, restarts, requeued):
    _, said, calls = fakes(script.text(job()), RUN.format(code=code), SLURM_RESTART_COUNT=str(restarts))
    assert ("scontrol requeue 7" in calls) == requeued, said


def test_lost_ranks_are_not_tried_for_ever(fakes, tmp_path):
    for crash in range(1, 5):
        _, said, calls = fakes(script.text(job()), RUN.format(code=137), SLURM_RESTART_COUNT=str(crash))
        assert calls.count("scontrol requeue 7") == min(crash, 3)
    assert "not tried again" in said


SLOW = """case $* in
    --mpi=list) echo pmi2 ;;
    *fald_hpc*) trap 'echo told; exit {code}' USR1; echo up; while :; do /bin/sleep 0.1; done ;;
esac"""


@pytest.mark.parametrize("code", [75, 138])
def test_the_warning_reaches_the_launcher_and_the_job_is_requeued(fakes, tmp_path, code):
    child = fakes(script.text(job()), SLOW.format(code=code), wait=False)
    said = []
    while "up" not in said:
        said.append(child.stdout.readline().strip())
    child.send_signal(signal.SIGUSR1)
    rest, _ = child.communicate(timeout=60)
    assert "told" in rest
    assert "requeued" in rest
    assert "scontrol requeue 7" in (tmp_path / "calls").read_text()
    assert not list(tmp_path.glob("*.crashes"))


def test_what_slurm_ends_itself_is_not_requeued(fakes, tmp_path):
    child = fakes(script.text(job()), SLOW.format(code=75).replace("USR1", "TERM"), wait=False)
    said = []
    while "up" not in said:
        said.append(child.stdout.readline().strip())
    child.send_signal(signal.SIGTERM)  # the shell and, as here, the ranks
    time.sleep(0.3)
    for line in (tmp_path / "calls").read_text().splitlines():
        assert not line.startswith("scontrol")
    subprocess.run(["pkill", "-TERM", "-P", str(child.pid)])
    rest, _ = child.communicate(timeout=60)
    assert child.returncode == 75
    assert "Slurm has ended this start" in rest
    assert "scontrol" not in (tmp_path / "calls").read_text()


def test_an_array_job_takes_its_combination(fakes):
    points = grid.points(["sampler.comm_prob=0.1,0.2", "run.seed=1,2"])
    _, _, calls = fakes(script.text(job(points=points)), RUN.format(code=0), SLURM_ARRAY_TASK_ID="2")
    run = next(line for line in calls if "fald_hpc run" in line)
    assert "--set sampler.comm_prob=0.2 --set run.seed=1 --out /data/my runs/titanic/comm_prob=0.2,seed=1 " in run
    code, said, calls = fakes(script.text(job(points=points)), RUN.format(code=0), SLURM_ARRAY_TASK_ID="4")
    assert code == 2
    assert "has no job 4" in said


@in_repository
def test_the_array_template_takes_its_combination(fakes):
    text = (ROOT / "slurm" / "array.sbatch").read_text()
    names = set()
    for number in range(6):
        _, _, calls = fakes(
            text, RUN.format(code=0), SLURM_ARRAY_TASK_ID=str(number), FALD_PARTS=str(ROOT / "slurm")
        )
        names.add(re.search(r"--out (\S+)", [line for line in calls if "fald_hpc run" in line][-1])[1])
    assert names == {f"runs/titanic-grid/comm_prob={p},name={n}" for p in (0.05, 0.1, 0.2) for n in ("fald", "vr_fald_star")}
    code, said, _ = fakes(text, RUN.format(code=0), SLURM_ARRAY_TASK_ID="6", FALD_PARTS=str(ROOT / "slurm"))
    assert code == 2
    assert "no combination" in said


@in_repository
@pytest.mark.parametrize("name", ["sample", "array", "scaling-strong", "scaling-weak"])
def test_the_templates_are_shell(name):
    assert subprocess.run(["bash", "-n", ROOT / "slurm" / f"{name}.sbatch"]).returncode == 0


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_threads_are_capped_where_the_user_has_said_nothing(fakes, name):
    text = script.part("env.sh") + f'\necho "{name}=${name} in $NUMBA_CACHE_DIR"\n'
    assert f"{name}=1 in /tmp/fald-numba-" in fakes(text)[1]
    assert f"{name}=3 in /local/fald-numba-" in fakes(text, **{name: "3"}, FALD_SCRATCH="/local")[1]


def test_the_folder_of_compiled_code_is_the_same_in_every_job(fakes):
    text = script.part("env.sh") + "\necho cache $NUMBA_CACHE_DIR\n"
    found = [re.search(r"cache (\S+)", fakes(text)[1])[1] for _ in range(2)]
    assert found[0] == found[1]
    assert re.fullmatch(r".*-[0-9a-f]{16}", found[0])


def test_mpiexec_where_srun_cannot_start_this_library(fakes):
    listed = "case $* in --mpi=list) echo pmi2 ;; *true) exit 1 ;; esac"  # shown, but its library is missing
    _, said, _ = fakes(script.part("env.sh"), listed)
    assert re.search(r"by: \S+/bin/mpiexec -n 4", said)


@pytest.mark.parametrize(
    ("environ", "launch"),
    [
        ({"FALD_LAUNCH": "srun --mpi=pmix_v4"}, "by: srun --mpi=pmix_v4"),
        ({"FALD_MPI": "openmpi"}, "by: srun --mpi=pmix --kill-on-bad-exit=1"),
        ({"FALD_MPI": "cray"}, "by: srun --mpi=cray_shasta --kill-on-bad-exit=1"),
        ({"FALD_MPI": "intel"}, "by: srun --mpi=pmi2 --kill-on-bad-exit=1"),
    ],
)
def test_the_launcher_that_fits(fakes, environ, launch):
    listed = "case $* in --mpi=list) echo pmi2 pmix cray_shasta ;; esac"
    assert launch in fakes(script.part("env.sh"), listed, **environ)[1]


def test_a_site_file_comes_first(fakes, tmp_path):
    site = tmp_path / "site.sh"
    site.write_text("FALD_LAUNCH='srun --mpi=of-the-site'\n")
    assert "srun --mpi=of-the-site" in fakes(script.part("env.sh"), FALD_SITE=str(site))[1]


# -- submitted jobs --------------------------------------------------------------------------------------------------


def test_standings_in_the_words_of_scontrol():
    said = (
        "JobId=8 ArrayJobId=7 ArrayTaskId=0 JobName=a JobState=RUNNING Reason=None Restarts=2 BatchFlag=1\n"
        "JobId=7 ArrayJobId=7 ArrayTaskId=1-2,5%4 JobName=a JobState=PENDING Reason=Resources Restarts=0\n"
    )
    found = queue.parse(said)
    assert found[0] == queue.Standing("running", 2)
    assert {task for task, standing in found.items() if standing.reason == "Resources"} == {1, 2, 5}
    assert queue.parse("JobId=3 JobState=COMPLETED Reason=None Restarts=0\n") == {None: queue.Standing("completed", 0)}
    assert queue.parse("slurm_load_jobs error: Invalid job id specified\n") == {}


def test_standings_in_the_words_of_sacct():
    assert queue.accounted("3|CANCELLED by 0\n") == {None: queue.Standing("cancelled")}
    assert set(queue.accounted("7_0|COMPLETED\n7_[1-2]|PENDING\n")) == {0, 1, 2}


def test_the_ledger_skips_what_is_no_entry(tmp_path):
    file = tmp_path / "deep" / "jobs.jsonl"
    assert ledger.read(file) == []
    entry = {"job": "3", "name": "a", "folders": ["/x"], "array": False}
    ledger.add(file, entry)
    with open(file, "a") as opened:
        opened.write("{torn\n[]\n")
    ledger.add(file, entry)
    assert ledger.read(file) == [entry, entry]


def test_the_words_of_sbatch_are_passed_on(tmp_path, monkeypatch):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text('#!/bin/sh\n[ -n "$SLURM_NTASKS" ] && echo inherited >&2\necho "sbatch: error: no account" >&2\nexit 1\n')
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_NTASKS", "4")  # of the job in which the user types
    with pytest.raises(UserError, match="no account") as refused:
        submit.submit(tmp_path / "job.sbatch")
    assert "inherited" not in str(refused.value)
    sbatch.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no sbatch on this machine"):
        submit.submit(tmp_path / "job.sbatch")


def fald(*words, cwd, **environ):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI_COMM", "SLURM"))}
    return subprocess.run(
        [sys.executable, "-m", "fald_hpc", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=300,
        env={**kept, "XDG_STATE_HOME": str(cwd / "state"), **environ},
    )  # fmt: skip


def test_the_command_writes_a_script_that_says_what_was_planned(tmp_path):
    done = fald("slurm", "titanic", "--ranks", 4, "--nodes", 2, "--time", 10, "--steps", 5000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "titanic.sbatch").read_text()
    assert "4 ranks on 2 nodes" in text
    assert f"FALD_PYTHON=${{FALD_PYTHON:-{sys.executable}}}" in text
    assert f"out={tmp_path}/runs/titanic" in text
    assert [path.name for path in tmp_path.iterdir()] == ["titanic.sbatch"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["titanic", "--ranks", 4], "--time missing"),
        (["titanic", "--ranks", 4, "--time", "soon"], "--time soon"),
        (["titanic", "--ranks", 1000, "--time", 10], "1000 ranks"),
        (["titanic", "--ranks", 2, "--nodes", 4, "--time", 10], "--nodes 4"),
        (["titanic", "--ranks", 2, "--time", 10, "--memory-per-rank", 10], "--memory-per-rank 10"),
        (["titanic", "--ranks", 2, "--time", 10, "--array", "sampler.comm_prop=1"], "comm_prop"),
        (["titanic", "--ranks", 2, "--time", 10, "--mpi", "lam"], "--mpi lam"),
        (["titanic", "--ranks", 2, "--time", 10, "--site", "nowhere.sh"], "--site nowhere.sh"),
        (["titanic", "--ranks", 2, "--time", 10, "--account", "a b"], "--account"),
        (["titanic", "--ranks", 2, "--time", 1, "--steps", 10**9], "more ranks"),
    ],
)
def test_mistakes_write_nothing(tmp_path, words, said):
    done = fald("slurm", *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_status_of_no_job_and_of_forgotten_ones(tmp_path):
    assert "No job" in fald("slurm", "--status", cwd=tmp_path).stdout
    entry = {"job": "999999", "name": "fald-a", "array": False, "folders": [str(tmp_path / "gone")]}
    ledger.add(tmp_path / "state" / "fald_hpc" / "jobs.jsonl", entry)
    row = json.loads(fald("slurm", "--status", "--json", cwd=tmp_path).stdout)[0]
    assert (row["slurm"], row["run"], row["step"]) == ("forgotten", None, None)
    assert "not started" in fald("slurm", "--status", cwd=tmp_path).stdout
