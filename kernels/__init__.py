"""Compiled arithmetic of fald_hpc: arrays in, arrays out; no files, no configuration, no logging."""

if __name__ != "fald_hpc.kernels":
    raise ImportError(
        f"this folder is built into the package as fald_hpc.kernels and was imported as {__name__!r}: "
        "install the project (pip install -e .) and import fald_hpc.kernels"
    )
