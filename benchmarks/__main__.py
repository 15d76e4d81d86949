"""Time of an iteration for the built-in examples on one rank: a table, and JSON for comparison.

    python -m benchmarks [--repeats 5] [--json FILE]

The time of sampling alone, from the run's own timers, at two numbers of steps: their difference over the difference of
the steps, so that set-up does not count. Medians over repeats with the smallest and the largest.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

from fald_hpc import threads

threads.cap(os.environ)  # before NumPy is imported

# example, overrides, chains
WORKLOADS = (
    ("titanic", ("run.chains=4",), 4),
    ("titanic", ("run.chains=1", "sampler.batch_size=1"), 1),
    ("gaussian", ("run.chains=4",), 4),
    ("gaussian-table1", ("run.chains=16", "sampler.comm_prob=0.1"), 16),
    ("quickstart-regression", ("run.chains=4",), 4),
)


def seconds(name: str, overrides: tuple[str, ...], steps: int) -> float:
    """Return the sampling time of one run."""
    from fald_hpc import config, execute

    run = execute.execute(config.load(name, [*overrides, f"run.steps={steps}"]), None)
    return float(run.manifest["seconds"]["sample"])


def measure(name: str, overrides: tuple[str, ...], repeats: int) -> list[float]:
    """Return seconds per iteration of all chains and clients, one number a repeat."""
    steps = 2000
    seconds(name, overrides, steps)  # compiles
    while seconds(name, overrides, steps) < 0.3:
        steps *= 4
    return [(seconds(name, overrides, 2 * steps) - seconds(name, overrides, steps)) / steps for _ in range(repeats)]


def main() -> None:
    """Measure and print."""
    from fald_hpc import config

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(f"{'workload':60s} {'us a step':>10s} {'spread':>15s} {'ns a chain and client':>22s}")
    for name, overrides, chains in WORKLOADS:
        clients = len(config.clients(config.load(name, [])).ids)
        found = measure(name, overrides, options.repeats)
        middle = statistics.median(found)
        label = " ".join((name, *overrides))
        spread = f"{min(found) * 1e6:.3g}-{max(found) * 1e6:.3g}"
        print(f"{label:60s} {middle * 1e6:10.3g} {spread:>15s} {middle * 1e9 / (chains * clients):22.3g}", flush=True)
        rows.append({"workload": label, "seconds_per_step": found, "chains": chains, "clients": clients})
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
