"""The roofline figure of docs/performance.md, and time per chain-step against the number of chains, from a JSON."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

INK, GREY = "#222222", "#8a8a8a"
COLOURS = {"W2": "#0072b2", "W3": "#d55e00", "W4": "#009e73", "W7": "#cc79a7"}
NAMES = {
    "W2": "W2: quadratic, d = 20",
    "W3": "W3: quadratic, d = 2, one chain",
    "W4": "W4: logistic, minibatch 10",
    "W7": "W7: softmax, d = 7850",
}
MARKERS = {"fald": "o", "vr_fald_star": "D"}


def roofline(results, path):
    """Draw multiply-adds per second against multiply-adds per byte read of the clients' data.

    Parameters
    ----------
    results : list of Result
        Of ``fald bench``; those with ``multiply_adds`` and ``bytes`` among their facts are drawn.
    path : Path
        A PNG.
    """
    figure, axes = plt.subplots(figsize=(7.2, 4.6), dpi=150)
    machine = {r.case: 1.0 / r.seconds.median for r in results if r.workload == "machine"}
    peaks = {name: machine[f"multiply-adds, {name}"] / 1e9 for name in ("256-bit vectors", "512-bit vectors")}
    intensity = np.geomspace(0.05, 8.0, 200)
    for name, peak in peaks.items():
        axes.plot(intensity, np.full_like(intensity, peak), color=INK, lw=1.2)
        axes.text(7.8, peak * 1.06, f"multiply-adds, {name}: {peak:.0f} G/s", ha="right", va="bottom", fontsize=8,
                  bbox={"fc": "white", "ec": "none", "pad": 1.0})  # fmt: skip
    top = max(peaks.values())
    for case, rate in machine.items():
        if case.startswith("rows"):
            line = np.minimum(intensity * rate / 1e9, top)
            axes.plot(intensity, line, color=GREY, lw=0.8)
            # memory is hardly slower than the cache before it here: its label goes under its line
            below = case.endswith("256 MB")
            label = f"{case.rsplit('of ', 1)[1]}: {rate / 1e9:.0f} GB/s"
            axes.text(0.055, 0.055 * rate / 1e9 * (0.95 if below else 1.08), label, fontsize=7, color=GREY, rotation=25,
                      va="top" if below else "bottom", rotation_mode="anchor")  # fmt: skip
    drawn = set()
    for r in results:
        facts = r.facts
        if "multiply_adds" not in facts or facts.get("noise_sharing", 1.0) != 1.0 or r.workload not in COLOURS:
            continue
        if "alone" in r.case or facts.get("chains", 100) == 16:
            continue
        sampler = facts.get("sampler", "vr_fald_star")
        label = NAMES[r.workload] if r.workload not in drawn else None
        drawn.add(r.workload)
        axes.plot(facts["multiply_adds"] / facts["bytes"], facts["multiply_adds"] / r.seconds.median / 1e9,
                  MARKERS[sampler], color=COLOURS[r.workload], label=label, ms=7, mec="white")  # fmt: skip
    axes.plot([], [], "o", color=GREY, label="FALD")
    axes.plot([], [], "D", color=GREY, label="VR-FALD*")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.05, 8.0)
    axes.set_ylim(0.1, top * 1.8)
    axes.set_xlabel("multiply-adds per byte of the clients' data")
    axes.set_ylabel("10$^9$ multiply-adds a second, one core")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def chains(results, path):
    """Draw time per chain-step of W2 against the number of chains of a rank."""
    rows = [r for r in results if r.workload == "chains"]
    n = [r.facts["chains"] for r in rows]
    figure, axes = plt.subplots(figsize=(7.2, 3.4), dpi=150)
    low, high = zip(*(r.seconds.quartiles for r in rows), strict=True)
    axes.fill_between(n, np.array(low) * 1e6, np.array(high) * 1e6, color="#0072b2", alpha=0.2, lw=0)
    axes.plot(n, [r.seconds.median * 1e6 for r in rows], "o-", color="#0072b2", ms=5, label="VR-FALD*, d = 20, 100 clients")
    axes.plot(n, [sum(r.limit.values()) * 1e6 for r in rows], color=INK, lw=1.2, label="limit: multiply-adds")
    axes.set_xscale("log", base=2)
    axes.set_xticks(n, [str(k) for k in n])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("chains on one rank")
    axes.set_ylabel("microseconds per chain-step")
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
