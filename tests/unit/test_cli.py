"""The command line: exit codes, one sentence for a user's mistake, nothing written then, quiet ranks."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

# Ten thousand steps of the Titanic example take about a second.
SHORT = ["--steps", "10000"]


def fald(*arguments, cwd, **environ):
    """Run the command line in a child process, outside any launcher."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI_COMM", "SLURM"))}
    return subprocess.run(
        [sys.executable, "-m", "fald_hpc", *map(str, arguments)],
        cwd=cwd,
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the output of a short run and its folder."""
    place = tmp_path_factory.mktemp("run")
    done = fald("run", "titanic", *SHORT, "--out", "out", cwd=place)
    assert done.returncode == 0, done.stderr
    return done, place / "out"


def assert_mistake(done, *words):
    """Assert that a child ended as a user's mistake does: code 2, one line, no traceback."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("fald: ")
    assert lines[0].endswith(".")
    for word in words:
        assert word in lines[0]


def test_help_lists_the_commands(tmp_path):
    done = fald(cwd=tmp_path)
    assert done.returncode == 0
    for command in ("run", "examples", "init", "check", "summary", "verify", "doctor"):
        assert f"\n  {command} " in done.stdout


def test_examples_and_init(tmp_path):
    listed = fald("examples", cwd=tmp_path).stdout
    assert {"titanic", "gaussian", "gaussian-table1", "quickstart-regression"} <= {
        line.split()[0] for line in listed.splitlines()
    }
    done = fald("init", "titanic", "study.toml", cwd=tmp_path)
    assert done.returncode == 0
    assert "[sampler]" in (tmp_path / "study.toml").read_text()
    assert_mistake(fald("init", "titanic", "study.toml", cwd=tmp_path), "study.toml", "--overwrite")
    assert_mistake(fald("init", "titanik", cwd=tmp_path), "titanic")
    assert fald("check", "study.toml", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "titanic", "--set", "sampler.step_sise=0.1"], ["step_sise", "step_size"]),
        (["run", "titanic", "--steps", "0"], ["steps"]),
        (["run", "nowhere.toml"], ["nowhere.toml"]),
        (["run", "titanic", "--resume", "--overwrite"], ["--resume", "--overwrite"]),
        (["check", "titanic", "--ranks", "1000"], ["ranks"]),
        (["check", "titanic", "--ranks", "0"], ["--ranks"]),
        (["summary", "nowhere"], ["nowhere"]),
        (["summary", "nowhere", "--json"], ["nowhere"]),
        (["report", "nowhere"], ["nowhere", "manifest.json"]),
        (["bias", "nowhere.toml"], ["nowhere.toml"]),
        (["bias", "titanic", "--comm-prob", "0.1,2"], ["comm_prob"]),
        (["bias", "titanic", "--batch-size", "5,"], ["--batch-size"]),
        (["verify", "titanic", "--ranks", "1"], ["--ranks"]),
        (["verify", "titanic", "--ranks", "1,x"], ["--ranks"]),
        (["nonsense"], ["nonsense"]),
        (["run", "titanic", "--nonsense"], ["--nonsense"]),
    ],
)
def test_mistakes_end_in_one_sentence_and_write_nothing(tmp_path, arguments, words):
    assert_mistake(fald(*arguments, cwd=tmp_path), *words)
    assert list(tmp_path.iterdir()) == []


def test_run_prints_the_table_and_where_the_results_are(finished):
    done, folder = finished
    for name in ("intercept", "class", "child", "male"):
        assert name in done.stdout
    assert "out" in done.stdout
    assert "\r" not in done.stdout + done.stderr
    assert {"draws.zarr", "summary.json", "manifest.json", "checkpoint"} <= {path.name for path in folder.iterdir()}


def test_a_folder_with_a_run_is_not_touched(finished):
    _, folder = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert_mistake(fald("run", "titanic", *SHORT, "--out", folder, cwd=folder.parent), "--resume", "--overwrite")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_overwrite_gives_the_same_bytes(finished, tmp_path):
    from fald_hpc import invariance

    _, folder = finished
    for _ in range(2):
        done = fald("run", "titanic", *SHORT, "--out", "out", "--overwrite", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert invariance.first_difference(folder, tmp_path / "out") is None


def test_another_seed_is_reported_as_different(finished, tmp_path):
    from fald_hpc import invariance

    _, folder = finished
    assert fald("run", "titanic", *SHORT, "--seed", "2", "--out", "out", cwd=tmp_path).returncode == 0
    assert invariance.first_difference(folder, tmp_path / "out") is not None


def test_summary_as_table_and_as_json(finished):
    _, folder = finished
    table = fald("summary", folder, cwd=folder)
    assert table.returncode == 0
    assert "R-hat" in table.stdout or "r_hat" in table.stdout
    found = json.loads(fald("summary", folder, "--json", cwd=folder).stdout)
    assert [p["name"] for p in found["parameters"]] == ["intercept", "class", "child", "male"]
    assert set(found["parameters"][0]) >= {"name", "mean", "sd", "mcse", "ess", "r_hat"}
    assert found["steps"] == 10000
    assert found["chains"] == 4
    assert {"communications", "refreshes", "seconds"} <= set(found)


@pytest.mark.parametrize(
    "hint",
    [
        {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"},
        {"PMI_SIZE": "4", "PMI_RANK": "0"},
    ],
)
def test_singleton_trap_is_refused_before_anything_is_written(tmp_path, hint):
    done = fald("run", "titanic", *SHORT, cwd=tmp_path, **hint)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "--allow-singleton" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_other_copies_of_a_singleton_trap_are_quiet(tmp_path):
    done = fald("run", "titanic", *SHORT, cwd=tmp_path, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="2")
    assert "fald:" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_serial_step_of_a_batch_job_is_no_trap(tmp_path):
    done = fald("run", "titanic", *SHORT, cwd=tmp_path, SLURM_NTASKS="4", SLURM_JOB_ID="7", SLURM_PROCID="0")
    assert done.returncode == 0, done.stderr


def test_check_counts_the_messages_that_a_run_makes(finished):
    _, folder = finished
    done = fald("check", "titanic", *SHORT, "--ranks", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    made = json.loads((folder / "manifest.json").read_text())["messages"]["made"]
    assert f"messages     {made} collective" in done.stdout
    for word in ("rank  clients", "B each", "memory", "time"):
        assert word in done.stdout
    resolved = tomllib.loads(done.stdout.split("\n\nparameters ")[0])
    assert resolved["run"] == {**resolved["run"], "steps": 10000, "chains": 4, "seed": 1}
    assert resolved["sampler"]["name"] == "vr_fald_star"


def test_resolved_configs_are_toml():
    from fald_hpc import config
    from fald_hpc.cli import toml

    for name in config.example_names():
        cfg = config.load(name, [])
        assert config.from_dict(tomllib.loads(toml.text(cfg.to_dict()))).to_dict() == cfg.to_dict()
    partition = {"scheme": "iid", "clients": 3}
    nested = {"data": {"file": 'a "b"', "partition": partition}, "run": {"steps": 5, "burn_in": 1e-3}}
    assert tomllib.loads(toml.text(nested)) == nested
