"""The figure of the README: how many times faster than each peer, from the JSON of the comparison."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PEERS = {"JAX": "#0072b2", "numba loop": "#009e73", "NumPy": "#d55e00", "SGMCMCJax": "#cc79a7"}
WORKLOADS = {
    "W1": "normals",
    "W2": "quadratic, d = 20, 100 chains",
    "W3": "quadratic, d = 2, 1 chain",
    "W4": "logistic, minibatch 10",
    "W7": "softmax, d = 7850",
}


def ratios(comparisons, path):
    """Draw the peer's time over ours, one line a case and one mark a peer, with quartiles.

    Parameters
    ----------
    comparisons : list of dict
        As ``python -m benchmarks --json`` writes them.
    path : Path
        A PNG.
    """
    cases = {}
    for c in comparisons:
        words = [word for word in c["case"].split(", ") if word.startswith(("τ", "SGLD", "SVRG"))]
        sampler = [name for name in ("VR-FALD*", "FALD") if c["case"].startswith(name)]
        cases.setdefault(", ".join([WORKLOADS[c["workload"]], *sampler, *words[:1]]), []).append(c)
    figure, axes = plt.subplots(figsize=(7.2, 0.4 + 0.3 * len(cases)), dpi=150, layout="constrained")
    for place, found in enumerate(reversed(cases.values())):
        for c in found:
            peer = next(name for name in ("SGMCMCJax", *PEERS) if c["peer"].startswith(name))
            axes.hlines(place, *c["ratio"]["quartiles"], color=PEERS[peer], lw=3, alpha=0.4)
            axes.plot(c["ratio"]["median"], place, "o", color=PEERS[peer], ms=6, mec="white")
    for peer, colour in PEERS.items():
        axes.plot([], [], "o", color=colour, ms=6, label=f"{peer}, both cores" if peer == "JAX" else peer)
    axes.axvline(1.0, color="#222222", lw=0.8)
    axes.set_xscale("log")
    axes.set_xlim(left=0.9)
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100, 200], labels=[f"{n}x" for n in (1, 2, 5, 10, 20, 50, 100, 200)])
    axes.minorticks_off()
    axes.set_yticks(range(len(cases)), labels=list(reversed(cases)), fontsize=8)
    axes.set_xlabel("times as fast as the peer (fald on one core)")
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    figure.savefig(path)
    plt.close(figure)
