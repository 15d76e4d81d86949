"""What a finished run gives back, from memory and from its folder."""

import numpy as np
import pytest

from fald_hpc import FALD, Clients, Gaussian, Run, UserError, open_run, sample


def test_memory_and_folder_agree(tmp_path):
    """A run read from its folder has the numbers of the one that sample() returned."""
    clients = Clients.from_gaussians(np.array([[0.0, 1.0], [2.0, -1.0]]), precisions=np.array([np.eye(2), 2 * np.eye(2)]))
    arguments = {"steps": 4000, "chains": 2, "seed": 3}
    memory = sample(Gaussian(), clients, FALD(step_size=0.05), **arguments)
    disk = sample(Gaussian(), clients, FALD(step_size=0.05), **arguments, out=tmp_path / "run")
    read = open_run(tmp_path / "run")
    for run in (disk, read):
        assert np.array_equal(run.mean, memory.mean)
        assert np.array_equal(run.sd, memory.sd)
        assert np.array_equal(run.covariance, memory.covariance)
        assert np.array_equal(run.draws.values, memory.draws.values)
        assert run.draws.dims == ("chain", "draw", "parameter")
        assert run.messages["made"] == run.messages["predicted"]
    assert memory.to_arviz().posterior["theta"].shape == memory.draws.shape


def test_other_ranks_say_where_results_are():
    """On ranks other than 0 every result says so instead of being empty."""
    elsewhere = Run({"parameters": [], "chains": 2, "steps": 10}, {})
    for name in ("mean", "sd", "covariance", "draws", "messages", "names"):
        with pytest.raises(RuntimeError, match="rank 0"):
            getattr(elsewhere, name)


def test_folder_without_run(tmp_path):
    """One sentence for a folder that holds no run."""
    with pytest.raises(UserError, match="holds no run"):
        open_run(tmp_path)
