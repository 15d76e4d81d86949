"""The clients' data: reading, partitioning, standardising, and the built-in examples.

Reading a file needs pyarrow (csv, parquet) only when such a file is opened; nothing here imports it earlier.
"""

from fald_hpc.data.clients import Clients
from fald_hpc.data.partition import Partition, label_table, partition
from fald_hpc.data.records import ClientData, GaussianClient

__all__ = ["ClientData", "Clients", "GaussianClient", "Partition", "label_table", "partition"]
