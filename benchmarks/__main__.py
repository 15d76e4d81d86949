"""fald_hpc beside its peers, measured in turns: a table of ratios, and JSON.

    python -m benchmarks [--workload W1,W2,W3,W4,W7] [--quick] [--json FILE]

Every ratio is a peer's wall time over ours in the same round; medians and quartiles over rounds. "By work" is the ratio of
the times on cores, all threads together: it is the larger one where a peer uses more cores than one, and other work on
the machine does not change it. The limits of the machine
are measured by ``fald bench``.
"""

import argparse
import os
from pathlib import Path

from fald_hpc import threads

threads.cap(os.environ)  # one thread for BLAS, as in a run; JAX's own threads are not touched


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", help="names with commas between them; all by default")
    parser.add_argument("--quick", action="store_true", help="small and short: for a look")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    from benchmarks import peers
    from fald_hpc.bench import document
    from fald_hpc.bench.table import quantity
    from fald_hpc.bench.workbench import Setting

    names = options.workload.split(",") if options.workload else list(peers.WORKLOADS)
    unknown = [name for name in names if name not in peers.WORKLOADS]
    if unknown:
        parser.error(f"there is no workload {unknown[0]!r}: choose from {', '.join(peers.WORKLOADS)}")
    header = f"{'':4s}{'case':76s} {'peer':22s} {'fald':>9s} {'peer':>9s} {'ratio':>7s} {'quartiles':>13s}"
    print(f"{header} {'by work':>8s}  must reach")
    found = []
    for name in names:
        for one in peers.WORKLOADS[name](Setting.of(options.quick)):
            low, high = one.ratio.quartiles
            ours, theirs = quantity(one.ours.median, ""), quantity(one.theirs.median, "")
            print(
                f"{one.workload:4s}{one.case:76s} {one.peer:22s} {ours:>9s} {theirs:>9s} {one.ratio.median:7.3g} "
                f"{f'{low:.3g}-{high:.3g}':>13s} {one.work_ratio.median:8.3g}  "
                f"{'' if one.least is None else f'>= {one.least:g}'}",
                flush=True,
            )
            found.append(one)
    if options.json is not None:
        built = document.build([], options.quick, comparisons=[one.to_dict() for one in found])
        document.write(built | {"command": "python -m benchmarks"}, options.json)


if __name__ == "__main__":
    main()
