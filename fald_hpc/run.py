"""A finished run: what :func:`fald_hpc.sample` returns and :func:`open_run` reads from a folder."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint, storage, summary
from fald_hpc import manifest as manifests
from fald_hpc.kernels import moments
from fald_hpc.metrics import diagnostics


class Summary(dict[str, Any]):
    """The summary of a run as a dictionary that prints as a table."""

    def __str__(self) -> str:
        """Return the posterior table; ranks other than 0 do not have it and say so."""
        return summary.text(self) if self["parameters"] else "(the results are on rank 0)"


class Run:
    """Results of a run, complete on rank 0.

    Attributes
    ----------
    manifest : dict
        Resolved settings, versions, layout, timers, messages.
    path : Path or None
        Folder of the results, None when they are in memory only.
    """

    def __init__(
        self,
        summary_: dict[str, Any],
        manifest: dict[str, Any],
        *,
        path: Path | None = None,
        draws: np.ndarray | None = None,
        covariance: np.ndarray | None = None,
    ) -> None:
        self._summary, self.manifest, self.path = summary_, manifest, path
        self._draws, self._covariance = draws, covariance

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table.

        Raises
        ------
        RuntimeError
            On ranks other than 0, which hold no results.
        """
        if not self.manifest:
            raise RuntimeError("the results of a run under MPI are on rank 0: read them there, or from its folder")
        rows: list[dict[str, Any]] = self._summary["parameters"]
        return rows

    def summary(self) -> Summary:
        """Return mean, sd, MCSE, ESS and R-hat of every parameter; printed, it is a table."""
        return Summary(self._summary)

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [row["name"] for row in self._rows()]

    def _column(self, key: str) -> np.ndarray:
        values = [row[key] for row in self._rows()]
        return np.array([np.nan if value is None else value for value in values])

    @property
    def mean(self) -> np.ndarray:
        """Posterior means: float64[d]."""
        return self._column("mean")

    @property
    def sd(self) -> np.ndarray:
        """Posterior standard deviations: float64[d]."""
        return self._column("sd")

    @property
    def covariance(self) -> np.ndarray | None:
        """Posterior covariance: float64[d, d], None if only variances were kept."""
        self._rows()
        if self._covariance is None and self.path is not None:
            saved = checkpoint.load(self.path / "checkpoint")
            if saved is not None:
                return diagnostics.covariance(moments.from_arrays(saved[0]))
        return self._covariance

    @property
    def messages(self) -> dict[str, int]:
        """Collective messages of the algorithm: made, predicted from the seed, and repeated to widen a window."""
        self._rows()
        return dict(self.manifest["messages"])

    @cached_property
    def draws(self) -> Any:
        """The kept draws of the average over clients: an ``xarray.DataArray`` (chain, draw, parameter)."""
        names = self.names
        if self._draws is not None:
            return storage.to_dataarray(self._draws, names)
        assert self.path is not None
        return storage.open_draws(self.path / "draws.zarr")

    def to_arviz(self) -> Any:
        """Return the draws as an ``arviz.InferenceData``."""
        return storage.to_arviz(self.draws)

    def __repr__(self) -> str:
        """Return one line."""
        place = f" in {self.path}" if self.path is not None else ""
        return f"Run({self._summary['chains']} chains, {self._summary['steps']} steps{place})"


def open_run(folder: str | Path) -> Run:
    """Read the results of a run from its folder.

    Raises
    ------
    UserError
        If the folder holds no finished run.
    """
    path = Path(folder)
    manifest = manifests.read(path)
    return Run(summary.read(path), manifest, path=path)
