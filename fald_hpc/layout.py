"""Which rank hosts which clients and chains: pure integers, no communication.

The ranks form a grid of chain groups times client groups. The ranks of a chain group share its chains and split the
clients; clients and chains are dealt in contiguous blocks whose sizes differ by at most one. More than one chain group
is used only on request or when ranks outnumber clients, since every chain group opens all clients' data.
"""

from dataclasses import dataclass

import numpy as np

from fald_hpc.errors import UserError


def block(n: int, parts: int, part: int) -> range:
    """Return one of ``parts`` contiguous blocks of 0..n-1, the larger ones first."""
    size, larger = divmod(n, parts)
    first = part * size + min(part, larger)
    return range(first, first + size + (part < larger))


@dataclass(frozen=True)
class Layout:
    """A process grid.

    Attributes
    ----------
    n_clients, n_chains : int
        Totals over all ranks.
    client_groups, chain_groups : int
        The grid; their product is the number of ranks.
    """

    n_clients: int
    n_chains: int
    client_groups: int
    chain_groups: int

    @property
    def n_ranks(self) -> int:
        """The number of ranks."""
        return self.client_groups * self.chain_groups

    def chain_group(self, rank: int) -> int:
        """Return the chain group of a rank: ranks of one group are neighbours."""
        return rank // self.client_groups

    def clients(self, rank: int) -> range:
        """Return the global indices of a rank's clients."""
        return block(self.n_clients, self.client_groups, rank % self.client_groups)

    def chains(self, rank: int) -> range:
        """Return the global indices of a rank's chains."""
        return block(self.n_chains, self.chain_groups, self.chain_group(rank))

    def assembled(self, parts: list[np.ndarray]) -> np.ndarray:
        """Return an array [b, s, ...] of all clients and chains from what every rank has of it; empty if those are."""
        whole = np.zeros((self.n_clients if parts[0].size else 0, self.n_chains, *parts[0].shape[2:]))
        for rank, part in enumerate(parts if parts[0].size else []):
            clients, chains = self.clients(rank), self.chains(rank)
            whole[clients.start : clients.stop, chains.start : chains.stop] = part
        return whole


def choose(n_ranks: int, n_clients: int, n_chains: int, chain_groups: int | str = "auto") -> Layout:
    """Return the layout for a number of ranks.

    Parameters
    ----------
    n_ranks, n_clients, n_chains : int
        At least 1.
    chain_groups : int or "auto"
        "auto" takes the fewest that leave no rank without a client.

    Raises
    ------
    UserError
        If some rank would be left without work, naming numbers of ranks that do work.
    """
    if chain_groups == "auto":
        for groups in range(1, n_ranks + 1):
            if n_ranks % groups == 0 and n_ranks // groups <= n_clients and groups <= n_chains:
                return Layout(n_clients, n_chains, n_ranks // groups, groups)
        raise UserError(
            f"{n_ranks} ranks cannot share {n_clients} clients and {n_chains} chains without idle ranks; "
            f"use {_suggestion(n_ranks, n_clients, n_chains)} ranks, or more chains."
        )
    groups = int(chain_groups)
    if groups > n_chains:
        raise UserError(f"chain_groups = {groups}, but there are only {n_chains} chains; give at most {n_chains}.")
    if n_ranks % groups != 0:
        raise UserError(
            f"chain_groups = {groups} does not divide the {n_ranks} ranks; start {groups * max(1, n_ranks // groups)} "
            "ranks, or change chain_groups."
        )
    if n_ranks // groups > n_clients:
        raise UserError(
            f"{n_ranks} ranks in {groups} chain groups leave {n_ranks // groups} ranks for {n_clients} clients; "
            f"use {groups * n_clients} ranks, or more chain groups."
        )
    return Layout(n_clients, n_chains, n_ranks // groups, groups)


def _suggestion(n_ranks: int, n_clients: int, n_chains: int) -> int:
    """Return the largest number of ranks below n_ranks that a layout exists for."""
    for ranks in range(n_ranks - 1, 0, -1):
        if any(
            ranks % groups == 0 and ranks // groups <= n_clients and groups <= n_chains
            for groups in range(1, ranks + 1)
        ):
            return ranks
    return 1
