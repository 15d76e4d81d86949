"""The command line ``fald``: one file per command beside this one.

Exit codes: 0 done, 1 a check failed or the program did, 2 a mistake of the user (one sentence on standard error,
nothing written), 75 stopped on request with the state saved, 130 interrupted. Under MPI rank 0 alone prints and returns
the code, since launchers add a banner to every rank that fails.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from typing import NoReturn

import typer

from fald_hpc import launch, threads
from fald_hpc.cli import bench, bias, check, doctor, examples, init, report, run, scale, slurm, status, summary, verify
from fald_hpc.errors import UserError, sentence

FAILED = 1
USER_MISTAKE = 2
INTERRUPTED = 130

# Commands that all ranks of an MPI job take part in; the others are rank 0's alone.
COLLECTIVE = ("run", "doctor", "bias")

app = typer.Typer(
    help="Federated Bayesian posteriors by FALD and VR-FALD*; serially, under mpiexec or under srun the same numbers.",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run", short_help="Sample a posterior.")(run.run)
app.command("examples", short_help="List the built-in examples.")(examples.examples)
app.command("init", short_help="Write an example as a file to edit.")(init.init)
app.command("check", short_help="Validate a config; show layout, messages, time.")(check.check)
app.command("summary", short_help="Print the posterior table of a run.")(summary.summary)
app.command("status", short_help="Show how far a run is, and if it is alive.")(status.status)
app.command("report", short_help="Write an HTML page with tables and plots.")(report.report)
app.command("bias", short_help="Measure the bias that the step size leaves.")(bias.bias)
app.command("verify", short_help="Compare rank counts byte for byte.")(verify.verify)
app.command("slurm", short_help="Write and submit batch jobs; show how they fare.")(slurm.slurm)
app.add_typer(scale.app, name="scale", short_help="Measure and predict scaling with ranks.")
app.command("bench", short_help="Measure speed against the limits of the machine.")(bench.bench)
app.command("doctor", short_help="Show MPI, launcher, threads; say what is wrong.")(doctor.doctor)


@app.callback()
def start(context: typer.Context) -> None:
    """Show the help where no command is given; leave the commands that are not parallel to rank 0."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(0)
    if _rank() > 0 and context.invoked_subcommand not in COLLECTIVE:
        raise typer.Exit(0)


def _rank() -> int:
    """Return the rank that the launcher gave to this process; independent copies are all rank 0."""
    return 0 if "--allow-singleton" in sys.argv else launch.read(os.environ).rank


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    threads.cap(os.environ)  # before anything imports NumPy
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may know fewer characters than names have
    if _rank() == 0:
        sys.exit(_code())
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        _code()
    sys.exit(0)


def _code() -> int:
    """Run the command, say what went wrong, and return the exit code."""
    try:
        code = app(standalone_mode=False, prog_name="fald") or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # who reads the output has seen enough (`fald summary DIR | head`): Python's last flush must not fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except UserError as error:
        _say(f"fald: {error}")
        return USER_MISTAKE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        # Typer's usage errors come from a bundled or a separate click, depending on its version.
        if not hasattr(error, "format_message"):
            raise
        _say(f"fald: {str(error.format_message()).rstrip('.')} (see: fald --help).")
        return USER_MISTAKE


def _show_warning(message: Warning | str, *place: object, **more: object) -> None:
    """Show a warning as a sentence, without the line of source that it came from."""
    _say(f"warning: {sentence(message)}")


def _say(line: str) -> None:
    """Print a line on standard error, on rank 0 alone."""
    if _rank() == 0:
        print(line, file=sys.stderr, flush=True)
