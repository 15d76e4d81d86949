"""The HTML report of a run: one file per section, :mod:`fald_hpc.report.page` puts them together.

matplotlib is imported inside functions only, so that nothing but ``fald report`` pays for it.
"""

from fald_hpc.report.page import write

__all__ = ["write"]
