"""W8: peak resident memory; it must not grow with the number of steps, and a small run must stay small."""

import tempfile

from fald_hpc.bench import children
from fald_hpc.bench.images import BATCH, CLASSES, CLIENTS, PIXELS
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import Spread
from fald_hpc.bench.workbench import Setting

LIMIT = 250e6

_LONG = """
import numpy as np
import fald_hpc
from fald_hpc.data.clients import Clients
clients = Clients.from_gaussians(np.zeros((1, 1)), precisions=np.ones((1, 1, 1)))
fald_hpc.sample(
    fald_hpc.Gaussian(), clients, fald_hpc.FALD(0.1, 0.05), steps={steps}, chains=1, init=[0.0],
    out={folder!r}, draws_megabytes=1.0,
)
"""

_SMALL = """
import runpy
sys.argv = ["fald", "run", "quickstart-regression", "--steps", "2000", "--quiet", "--overwrite", "--out", {folder!r}]
sys.stdout = open("/dev/null", "w")
runpy.run_module("fald_hpc", run_name="__main__")
"""

_LARGE = """
from fald_hpc.bench import images
prepared = images.case({rows})
prepared.run(20)
"""


def measure(setting: Setting) -> list[Result]:
    """Measure runs of few and of many steps, the command line on a small example, and a large model."""
    few, many = (10**5, 10**6) if setting.quick else (10**6, 10**8)
    with tempfile.TemporaryDirectory(prefix="fald-bench-") as place:
        small = children.peak_bytes(_SMALL.format(folder=f"{place}/small"))
        small = children.peak_bytes(_SMALL.format(folder=f"{place}/small"))  # the first one may have compiled
        short = children.peak_bytes(_LONG.format(steps=few, folder=f"{place}/few"))
        short = children.peak_bytes(_LONG.format(steps=few, folder=f"{place}/few-again"))
        long = children.peak_bytes(_LONG.format(steps=many, folder=f"{place}/many"))
    results = [
        Result("W8", "fald run quickstart-regression, warm cache", "bytes", Spread((small,)), target="<= 250 MB",
               value=small / LIMIT),
        Result("W8", f"{few:.0e} steps", "bytes", Spread((short,))),
        Result("W8", f"{many:.0e} steps", "bytes", Spread((long,)), target="within 5 % of the fewer steps",
               value=long / short),
    ]  # fmt: skip
    if not setting.quick:
        rows = 3000
        large = children.peak_bytes(_LARGE.format(rows=rows))
        data = 8.0 * CLIENTS * rows * PIXELS
        results.append(
            Result("W8", f"softmax on {CLIENTS} x {rows} rows of {PIXELS}, {CLASSES} classes, minibatch {BATCH}", "bytes",
                   Spread((large,)), target="<= 3 x data and state", value=(large - small) / data)
        )  # fmt: skip
    return results
