"""Shared set-up of the tests: the oracles on the import path, and the machine kept quiet."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
