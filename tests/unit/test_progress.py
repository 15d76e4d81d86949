"""Progress where the output is not a terminal (users.md row 57): complete lines, flushed, never a carriage return."""

import io

from fald_hpc.cli import progress


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_one_line_per_interval():
    stream, clock = io.StringIO(), Clock()
    report = progress.Lines(stream, interval=10.0, clock=clock)
    for step in range(0, 101, 5):
        report(step, 100)
        clock.now += 1.0
    report.close()
    # 21 calls, one a second: lines at seconds 10 and 20, when steps 50 and 100 are done
    assert stream.getvalue().splitlines() == [
        "step 50 of 100 (50 %), about 10 s left",
        "step 100 of 100 (100 %), about 0 s left",
    ]
    assert "\r" not in stream.getvalue()


def test_short_runs_say_only_the_opening():
    stream, clock = io.StringIO(), Clock()
    report = progress.Lines(stream, ["2 ranks on n1 (2 cores)"], clock=clock)
    assert stream.getvalue() == ""
    report(0, 100)
    report(100, 100)
    report.close()
    assert stream.getvalue() == "2 ranks on n1 (2 cores)\n"


def test_durations():
    assert [progress.duration(t) for t in (0.4, 59.4, 200, 7500)] == ["0 s", "59 s", "3 min 20 s", "2 h 5 min"]


def test_lines_unless_a_terminal(capsys):
    assert isinstance(progress.reporter(), progress.Lines)
