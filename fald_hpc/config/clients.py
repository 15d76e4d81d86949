"""The clients that a configuration describes."""

from typing import TYPE_CHECKING, Any

from fald_hpc.config.schema import Config

if TYPE_CHECKING:
    from fald_hpc.data.clients import Clients


def clients(config: Config) -> "Clients":
    """Return the clients of a configuration; a folder is listed, but no client's file is opened yet.

    Raises
    ------
    UserError
        If the folder or file cannot be used as configured.
    """
    from fald_hpc.data.builtin import EXAMPLES
    from fald_hpc.data.clients import Clients
    from fald_hpc.data.partition import Partition

    data = config.data
    shares = None if data.prior_shares == "equal" else data.prior_shares
    if data.example is not None:
        return EXAMPLES[data.example]().with_prior_shares(shares)
    columns: dict[str, Any] = {
        "label": data.label,
        "features": data.features,
        "weight": data.weight,
        "offset": data.offset,
    }
    if data.folder is not None:
        kind = "gaussian" if config.target.potential == "gaussian" else "rows"
        return Clients.from_folder(config.path(data.folder), kind, **columns, prior_shares=shares)
    partition = None
    if data.partition is not None:
        table = data.partition
        partition = Partition(table.scheme, table.clients, table.seed, table.alpha, table.classes_per_client)
    assert data.file is not None  # one of the three is set: checked with the configuration
    return Clients.from_file(config.path(data.file), data.client_column, partition, **columns, prior_shares=shares)
