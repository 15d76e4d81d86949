"""The benchmark's own logic: turns, ratios, limits, the table, the JSON; and the command on a few quick workloads."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fald_hpc.bench import catalogue, children, document, limits, normals, quadratics, questions, table
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import Spread, difference, in_turns, ratio
from fald_hpc.bench.workbench import Case, Setting, repeated
from fald_hpc.errors import UserError

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="speed needs compiled kernels")
TINY = Setting(quick=True, repeats=2, seconds=1e-3)


def test_measurements_take_turns_and_the_first_round_is_dropped():
    calls = []

    def measurement(name):
        def measure():
            calls.append(name)
            return float(len(calls))

        return measure

    found = in_turns({"a": measurement("a"), "b": measurement("b")}, 3)
    assert calls == ["a", "b"] * 4
    assert found["a"].repeats == (3.0, 5.0, 7.0)
    assert found["b"].repeats == (4.0, 6.0, 8.0)


def test_median_quartiles_best():
    spread = Spread((5.0, 1.0, 2.0, 4.0, 3.0))
    assert (spread.median, spread.quartiles, spread.best) == (3.0, (2.0, 4.0), 1.0)
    assert spread.to_dict()["repeats"] == [5.0, 1.0, 2.0, 4.0, 3.0]
    with pytest.raises(ValueError, match="no repeat"):
        Spread(())


def test_ratios_and_differences_are_of_the_same_round():
    first, second = Spread((2.0, 9.0)), Spread((1.0, 3.0))
    assert ratio(first, second).repeats == (2.0, 3.0)
    assert difference(first, second, 0.5).repeats == (0.5, 3.0)


def test_the_limit_is_the_sum_of_its_parts():
    result = Result("W0", "case", "step", Spread((6e-6,)), {"a": 1e-6, "b": 2e-6}, "<= 1.5 x limit")
    assert result.ratio == pytest.approx(2.0)
    assert Result("W0", "case", "step", Spread((6e-6,))).ratio is None


def test_a_result_survives_the_json():
    result = Result("W0", "case", "step", Spread((1.0, 2.0)), {"a": 0.5}, "<= 4", 1.5, 0.25, {"ranks": 2})
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    memory = Result("W8", "case", "bytes", Spread((1e8,)))
    assert Result.from_dict(json.loads(json.dumps(memory.to_dict()))) == memory


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2.0, "s", "2 s"), (3.5e-3, "s", "3.5 ms"), (1.8e-6, "s", "1.8 us"), (2.2e-9, "s", "2.2 ns"),
     (2.5e8, "bytes", "250 MB")],
)  # fmt: skip
def test_quantities_have_a_unit_that_suits_them(value, unit, text):
    assert table.quantity(value, unit) == text


def test_a_line_of_the_table():
    result = Result("W0", "a case", "step", Spread((1e-6, 2e-6, 3e-6)), {"a": 1e-6}, "<= 1.5 x limit")
    words = table.text([result]).splitlines()[1].split()
    assert words == ["W0", "a", "case", "2", "us", "1.5-2.5", "us", "1", "us", "2", "<=", "1.5", "x", "limit"]


def test_workloads_are_chosen_by_name_in_their_order():
    assert catalogue.chosen(["w3", "W1"], quick=False) == ["W1", "W3"]
    assert catalogue.chosen(None, quick=False) == list(catalogue.NAMES)
    assert set(catalogue.chosen(None, quick=True)) < set(catalogue.NAMES)
    assert list(catalogue.workloads(lambda ranks: [])) == list(catalogue.NAMES)
    with pytest.raises(UserError, match="no workload 'W99'"):
        catalogue.chosen(["W99"], quick=False)


@compiled
def test_yardsticks_are_possible():
    """Wide bounds: no processor does 10^12 a second on one core, none at all fewer than 10^7."""
    assert 1e-12 < limits.multiply_add() < 1e-7
    assert 1e-12 < limits.product() < 1e-7
    assert 1e-13 < limits.RowReader(100_000, 50)() < 1e-7
    assert 1e-10 < normals.seconds_of_one() < 1e-5


def test_rows_are_read_in_an_order_that_stays_inside_the_table():
    reader = limits.RowReader(400 * 37, 50)
    assert reader.table.shape == (37, 50)
    assert set(reader.order.tolist()) == set(range(37))


@compiled
def test_a_case_runs_again_from_its_start():
    case = quadratics.case("vr_fald_star", 2, 2, 1.0)
    assert case.run(50) > 0.0
    messages = dict(case.messages)
    case.run(50)
    assert case.messages == messages
    assert repeated(case, TINY)["fald"]() > 0.0
    assert case.steps_for(1e-4, most=100) <= 100


@compiled
def test_independent_coins_and_every_step():
    assert isinstance(quadratics.case("fald", 2, 2, 0.0, shared=False), Case)
    assert quadratics.case("fald", 2, 2, 0.0, every_step=True).run(20) > 0.0


@compiled
def test_exact_sums_have_a_price():
    results = questions.exact_sums(TINY)
    assert all(result.value > 0.1 and result.unit == "value" for result in results)


def test_machine_and_versions_are_in_the_document():
    built = document.build([], True)
    assert built["format"] == document.FORMAT
    assert {"system", "processor", "cores", "caches", "load"} == set(built["machine"])
    assert built["versions"]["numpy"] == np.__version__


def test_a_child_that_fails_says_why():
    with pytest.raises(UserError, match="reason"):
        children.run([sys.executable, "-c", "import sys; sys.exit('reason')"])


def test_peak_memory_is_of_the_child_alone():
    small = children.peak_bytes("pass")
    large = children.peak_bytes("x = b'1' * 200_000_000")
    assert small < 100e6
    assert 190e6 < large - small < 250e6


def test_on_ranks_refuses_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        document.write({}, tmp_path / "file" / "bench.json")


def fald(*arguments):
    command = [sys.executable, "-m", "fald_hpc", "bench", *arguments]
    return subprocess.run(command, env=children.environment(1), capture_output=True, text=True)


@compiled
def test_the_command_prints_a_table_and_writes_json(tmp_path):
    done = fald("--quick", "--workload", "W1,W3,sums", "--json", str(tmp_path / "bench.json"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == table.HEADER
    assert [line.split()[0] for line in lines[1:4]] == ["W1", "W3", "W3"]
    built = json.loads((tmp_path / "bench.json").read_text())
    assert set(built) == {"format", "date", "command", "quick", "machine", "versions", "results"}
    assert built["command"].startswith("fald bench --quick --workload W1,W3,sums")
    for found in built["results"]:
        assert set(found) == {
            "workload", "case", "unit", "seconds", "limit", "ratio_to_limit", "target", "value", "compile_seconds",
            "facts",
        }  # fmt: skip
        assert len(found["seconds"]["repeats"]) == Setting.of(True).repeats
        assert 0.0 < found["seconds"]["best"] <= found["seconds"]["median"]
        low, high = found["seconds"]["quartiles"]
        assert low <= found["seconds"]["median"] <= high
        assert found["ratio_to_limit"] == pytest.approx(found["seconds"]["median"] / sum(found["limit"].values()))
    assert len(document.read(tmp_path / "bench.json")) == len(built["results"])


def test_a_wrong_name_is_one_sentence():
    done = fald("--workload", "W99")
    assert done.returncode == 2
    assert done.stderr.startswith("fald: there is no workload 'W99'")
    assert len(done.stderr.strip().splitlines()) == 1
