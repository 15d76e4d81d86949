"""The page: sections in order, every text escaped, nothing loaded from elsewhere."""

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import durable, summary
from fald_hpc.errors import UserError
from fald_hpc.folder import REPORT
from fald_hpc.metrics import diagnostics
from fald_hpc.report import canvas, costs, drift, facts, marginals, ranks, selection, traces, work
from fald_hpc.report.css import CSS
from fald_hpc.run import Run, open_run

MARK = '<meta name="generator" content="fald report">'
"""Tells our own files, which may be replaced, from others."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a finished run as one HTML file and return its path.

    Parameters
    ----------
    folder : path
        Of the run.
    out : path, optional
        File to write, ``folder/report.html`` by default. An earlier report is replaced, any other file is not.

    Raises
    ------
    UserError
        There is no finished run in the folder, or the file cannot be written.
    """
    run = open_run(folder)
    target = Path(folder) / REPORT if out is None else Path(out)
    try:
        if target.exists() and MARK not in target.read_text(encoding="utf-8", errors="replace")[:400]:
            raise UserError(f"{target} exists and is not a report: choose another file with --out")
        durable.write(target, build(run).encode())
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from None
    return target


def build(run: Run) -> str:
    """Return the page of a run as text: the same for the same results."""
    found, manifest = run.summary(), run.manifest
    rows = found["parameters"]
    shown = selection.choose(rows)
    title = facts.title(manifest)
    draws = np.asarray(run.draws)[:, :, shown]
    with canvas.style():
        sections = [
            f"<h1>{_(title)}</h1>",
            pairs(facts.collect(manifest, found)),
            _warnings([*_state(manifest), *found["warnings"], *manifest.get("notes", [])]),
            _posterior(rows, shown),
            *_of_draws(draws, [rows[p] for p in shown], found, manifest),
            _costs(found, manifest),
            _drift(manifest),
        ]
    body = "\n".join(section for section in sections if section)
    head = (
        f'<meta charset="utf-8">{MARK}<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{_(title)}</title>'
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}\n<style>{CSS}</style></head>\n<body>\n{body}\n</body></html>\n'


def _(text: Any) -> str:
    return html.escape(str(text))


def pairs(content: Sequence[tuple[str, str]]) -> str:
    """Return names and values as a definition list."""
    return "<dl>" + "".join(f"<dt>{_(name)}</dt><dd>{_(value)}</dd>" for name, value in content) + "</dl>"


def _state(manifest: dict[str, Any]) -> list[str]:
    state = manifest.get("state", "finished")
    return [] if state == "finished" else [f"this run is not finished (state: {state}); continue it with --resume"]


def _warnings(texts: Sequence[str]) -> str:
    if not texts:
        return '<p class="fine">No warnings: chains agree and there are enough draws.</p>'
    items = "".join(f"<li>{_(text)}</li>" for text in texts)
    return f'<div class="warning"><strong>Warnings</strong><ul>{items}</ul></div>'


def _posterior(rows: Sequence[dict[str, Any]], shown: Sequence[int]) -> str:
    """Return the table; numbers that a reader must not trust are marked."""
    lines = []
    for p in shown:
        row, cells = rows[p], summary.cells(rows[p])
        doubtful = {
            3: row["mcse"] is None,
            4: row["ess"] is None or row["ess"] < summary.FEW_EFFECTIVE,
            5: row["r_hat"] is None or row["r_hat"] > diagnostics.LARGEST_R_HAT,
        }
        cells = [f'<td class="doubt">{_(c)} !</td>' if doubtful.get(i) else f"<td>{_(c)}</td>" for i, c in enumerate(cells)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    names = ("parameter", "mean", "sd", "MCSE", "ESS", "R-hat")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    note = (
        f"MCSE: Monte Carlo standard error of the mean. ESS: effective sample size of all chains. Marked with !: R-hat above "
        f"{diagnostics.LARGEST_R_HAT}, ESS below {summary.FEW_EFFECTIVE}, or too few draws to know. The bias that the step "
        "size leaves is not in this table: fald bias measures it."
    )
    left_out = selection.sentence(rows, shown)
    return section(
        "Posterior", f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>", f"{left_out} {note}"
    )


def section(title: str, content: str, note: str = "") -> str:
    """Return a section with an explanation below its content."""
    text = f'<p class="note">{_(note.strip())}</p>' if note.strip() else ""
    return f"<section><h2>{_(title)}</h2>{content}{text}</section>"


def figure(name: str, label: str, make: Callable[[], Any]) -> str:
    """Return a figure as an inline SVG with a label for readers that do not see it."""
    return f'<figure role="img" aria-label="{_(label)}">{canvas.svg(make(), name)}</figure>'


def _of_draws(
    draws: np.ndarray, rows: Sequence[dict[str, Any]], found: dict[str, Any], manifest: dict[str, Any]
) -> list[str]:
    """Return the sections that show draws, or say why there are none."""
    chains, n, _d = draws.shape
    if n < 2:
        return [section("Draws", "<p>There are too few recorded draws to plot.</p>")]
    names = [row["name"] for row in rows]
    ess = [row["ess"] for row in rows]
    first, last = int(manifest.get("burn_in", 0)), int(found["steps"])
    thin = max(1, round(found["records"] / n))
    kept = f"{n:,} draws of each chain, " + ("every record." if thin == 1 else f"one in {thin} records.")
    some = f" Chains 1 to {canvas.MOST_CHAINS} of {chains}." if chains > canvas.MOST_CHAINS else ""
    stride = traces.stride(draws)
    sections = [
        section(
            "Marginals",
            figure("marginals", "Marginal posterior of each parameter", lambda: marginals.draw(draws, names, ess)),
            f"Grey: all draws. Lines: kernel density estimates of the chains. {kept}{some}",
        ),
        section(
            "Traces",
            figure("traces", "Trace of each parameter", lambda: traces.draw(draws, names, (first, last))),
            (f"One kept draw in {stride} is drawn." if stride > 1 else "All kept draws.") + some,
        ),
    ]
    if chains > 1:
        sections.append(
            section(
                "Rank plots",
                figure("ranks", "Ranks of each chain's draws", lambda: ranks.draw(draws, names)),
                "Histogram of the ranks of a chain's draws among those of all chains (Vehtari et al. 2021). Chains that "
                "agree stay in the grey band, two standard errors to either side, in about 95 of 100 bins or more; "
                "without a band there are too few draws to know it." + some,
            )
        )
    grown = work.growth(draws)
    if np.isfinite(grown.ess[-1]).any():
        own = 1 if manifest.get("schedule", "shared") == "shared" else chains
        averagings = found["communications"] / own * (last - first) / last
        draw = lambda: work.draw(grown, names, [row["sd"] for row in rows], last - first, averagings)  # noqa: E731
        sections.append(
            section(
                "Effective samples and error against work",
                figure("work", "Effective sample size and Monte Carlo error against iterations", draw),
                (f"Labelled: smallest and largest ESS of the {len(names)} parameters shown. " if len(names) > work.FEW else "")
                + f"Diagnostics of the first 1/{work.PARTS}, 2/{work.PARTS}, ... of the kept draws; gaps: too few draws to "
                f"know. Where R-hat is still above {diagnostics.LARGEST_R_HAT} both are from the spread between half chains, "
                "which is why a line may jump. A straight line through zero on the left and 1/√iterations on the right are what "
                "chains that have forgotten their start give.",
            )
        )
    return sections


def _costs(found: dict[str, Any], manifest: dict[str, Any]) -> str:
    seconds = {k: v for k, v in (manifest.get("seconds") or found.get("seconds") or {}).items() if not isinstance(v, dict)}
    bars = figure("time", "Wall time by phase", lambda: costs.draw(seconds)) if seconds else ""
    total = f"Wall time of rank 0: {seconds['total']:.3g} s in all. " if "total" in seconds else ""
    return section("Time and messages", bars + pairs(costs.facts(manifest, found)), total)


def _drift(manifest: dict[str, Any]) -> str:
    table, more = drift.table(manifest), drift.facts(manifest)
    if table is None and not more:
        return ""
    text = ""
    if table is not None:
        head = "".join(f'<th scope="col">{_(name)}</th>' for name in table[0])
        body = "".join(f"<tr>{''.join(f'<td>{_(cell)}</td>' for cell in row)}</tr>" for row in table[1])
        text = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    some = ""
    if table is not None and len(table[1]) < len(manifest["clients"]):
        some = f"The {len(table[1])} of {len(manifest['clients'])} clients with the largest value in the first column. "
    return section("Drift of the clients", text + (pairs(more) if more else ""), some + drift.NOTE)
