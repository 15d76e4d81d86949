"""Configuration of a run: TOML with the tables [target], [data], [sampler], [run] and [output], checked as a whole.

``load`` reads a file or a built-in example and applies overrides; every mistake is a :class:`UserError` that names the
key, the nearest valid one and the allowed values. :mod:`fald_hpc.config.schema` lists all keys.
"""

from fald_hpc.config.clients import clients
from fald_hpc.config.examples import example_names, example_text
from fald_hpc.config.load import from_dict, load
from fald_hpc.config.schema import Config

__all__ = ["Config", "clients", "example_names", "example_text", "from_dict", "load"]
