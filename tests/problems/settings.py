"""Scalars of a run for the compiled steps alone: one process, no events, chains one by one."""

import math

import numpy as np

from fald_hpc.kernels import noise
from fald_hpc.kernels.state import Settings

KEY = noise.key(5)


def settings(clients: int, tau: float, *, step_size: float = 0.01, **more: int) -> Settings:
    """Return the settings of so many clients, a share of common noise and a step size; ``more`` replaces fields."""
    return Settings(
        communicator=-1,
        first_client=3,
        first_chain=0,
        every_step=False,
        key=KEY,
        n_clients=clients,
        width=45,
        step_size=step_size,
        common_scale=math.sqrt(2 * step_size * tau / clients),
        private_scale=math.sqrt(2 * step_size * (1 - tau)),
        average_threshold=np.uint64(0),
        refresh_threshold=np.uint64(0),
        burn_in=0,
        side_by_side=1,
        batches=1,
    )._replace(**more)
