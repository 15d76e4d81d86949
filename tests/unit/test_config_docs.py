"""docs/config.md says what the schema says: every key, what is allowed, the default; and nothing else."""

import re
from dataclasses import MISSING
from pathlib import Path

import pytest

from fald_hpc.config import schema
from fald_hpc.config.names import names_of, potential_keys, sampler_keys

PAGE = Path(__file__).parents[2] / "docs" / "config.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the sources, not an installed package")

TABLES = {
    "target": schema.Target,
    "data": schema.Data,
    "data.partition": schema.PartitionTable,
    "sampler": schema.Sampler,
    "run": schema.RunTable,
    "output": schema.Output,
}

# What a key gets that is left out although the schema has no default: that of the sampler or potential that takes it.
DEFAULTS = {
    key: value
    for keys_of, table in ((potential_keys, "target"), (sampler_keys, "sampler"))
    for name in names_of(table)
    for key, value in keys_of(name).items()
    if key != "classes"  # a config must say it
}


def documented(table):
    """Return {key: (allowed, default)} of a table of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"## [{table}]\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| .+ \|$", text, flags=re.MULTILINE)
    return {key: (allowed, default) for key, allowed, default in rows}


def declared(model):
    """Return {key: (allowed, default)} of the schema, in the words of the page."""

    def default(key, field):
        if field.is_required():
            return "needed"
        value = DEFAULTS.get(key) if field.default is None else field.default
        if value is None or value is MISSING:
            return "none"
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {key: (field.description, default(key, field)) for key, field in model.model_fields.items()}


@pytest.mark.parametrize("table", list(TABLES))
def test_the_page_and_the_schema_agree(table):
    assert documented(table) == declared(TABLES[table])


def test_every_table_is_on_the_page():
    assert re.findall(r"^## \[(.+)\]$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE) == list(TABLES)
