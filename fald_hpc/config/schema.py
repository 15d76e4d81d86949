"""All keys of a configuration, with types, ranges and defaults.

The description of a field says what is allowed; messages to the user quote it. Contradictions between keys are in
:mod:`fald_hpc.config.contradictions`.
"""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from fald_hpc.errors import UserError

MAX_STEPS = 2**40 - 1
MAX_CHAINS = 2**16
MAX_CLIENTS = 2**20


def expand(text: str) -> Path:
    """Return a path with ``~`` replaced by a home folder.

    Raises
    ------
    UserError
        If there is no such home.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UserError(f"{text}: there is no such home folder") from None


def _whole(value: Any) -> Any:
    """Let 1e6 stand for 1000000; anything else that is not an integer is refused by the strict type."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[Whole, Field(ge=1)]
Seed = Annotated[Whole, Field(ge=0, le=2**64 - 1)]
Text = Annotated[str, Field(min_length=1)]

_ALLOWED_COUNT = "a whole number of at least 1"
_ALLOWED_SEED = "a whole number from 0 to 2^64 - 1"
_ALLOWED_POSITIVE = "a positive finite number"
_ALLOWED_COLUMN = "the name of a column"


class Table(BaseModel):
    """A table whose values must have exactly the types of the schema."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OpenTable(Table):
    """A table that may also hold the keys of a sampler or potential added as a file; those are checked by it."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class Target(OpenTable):
    """[target]: the model of the clients' rows and the prior."""

    potential: str = Field(description="the name of a potential")
    prior_scale: Positive = Field(1.0, description=_ALLOWED_POSITIVE)
    intercept: bool = Field(False, description="true or false")
    noise_sd: Positive | None = Field(None, description=_ALLOWED_POSITIVE)
    classes: Annotated[Whole, Field(ge=2)] | None = Field(None, description="a whole number of at least 2")
    covariance: Literal["dense", "diagonal"] | None = Field(None, description='"dense" or "diagonal"')
    function: Text | None = Field(None, description='a file and a name in it, as in "model.py:gradient"')
    dimension: Count | None = Field(None, description=_ALLOWED_COUNT)


class PartitionTable(Table):
    """[data.partition]: how the rows of one file are split over clients."""

    scheme: Literal["iid", "dirichlet", "classes", "quantity"] = Field(
        description='"iid", "dirichlet", "classes" or "quantity"'
    )
    clients: Annotated[Whole, Field(ge=1, le=MAX_CLIENTS)] = Field(description="a whole number from 1 to 2^20")
    alpha: Annotated[float, Field(ge=1e-6, le=1e6)] | None = Field(None, description="a number from 1e-6 to 1e6")
    classes_per_client: Count | None = Field(None, description=_ALLOWED_COUNT)
    seed: Seed = Field(1, description=_ALLOWED_SEED)


class Data(Table):
    """[data]: where the clients' data are."""

    example: Text | None = Field(None, description="the name of a built-in example")
    folder: Text | None = Field(None, description="the path of a folder with one file per client")
    file: Text | None = Field(None, description="the path of one file with the rows of all clients")
    label: Text | None = Field(None, description=_ALLOWED_COLUMN)
    features: Annotated[list[Text], Field(min_length=1)] | None = Field(None, description="a list of column names")
    weight: Text | None = Field(None, description=_ALLOWED_COLUMN)
    offset: Text | None = Field(None, description=_ALLOWED_COLUMN)
    client_column: Text | None = Field(None, description=_ALLOWED_COLUMN)
    standardise: bool = Field(False, description="true or false")
    prior_shares: Literal["equal"] | Annotated[list[Annotated[float, Field(ge=0.0, le=1.0)]], Field(min_length=1)] = (
        Field("equal", description='"equal" or a list of numbers of at least 0, one for each client, with sum 1')
    )
    partition: PartitionTable | None = Field(None, description="a table [data.partition]")


class Sampler(OpenTable):
    """[sampler]: the algorithm and its settings."""

    name: str = Field("vr_fald_star", description="the name of a sampler")
    step_size: Literal["auto"] | Positive = Field("auto", description='"auto" or a positive finite number')
    comm_prob: Probability = Field(0.1, description="a probability in (0, 1]")
    refresh_prob: Probability | None = Field(None, description="a probability in (0, 1]")
    noise_sharing: Annotated[float, Field(ge=0.0, le=1.0)] = Field(1.0, description="a number in [0, 1]")
    batch_size: Literal["full"] | Count = Field("full", description='"full" or a whole number of at least 1')
    schedule: Literal["shared", "independent"] = Field("shared", description='"shared" or "independent"')
    init: Literal["dispersed", "mode", "prior"] | Annotated[list[Finite], Field(min_length=1)] = Field(
        "dispersed", description='"dispersed", "mode", "prior" or a list of finite numbers'
    )


class RunTable(Table):
    """[run]: how long, how many chains, which seed."""

    steps: Annotated[Whole, Field(ge=1, le=MAX_STEPS)] = Field(description="a whole number from 1 to 2^40 - 1")
    burn_in: Annotated[int, Field(ge=0, le=MAX_STEPS)] | Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.1, description="a fraction in [0, 1) or a whole number of steps"
    )
    chains: Annotated[Whole, Field(ge=1, le=MAX_CHAINS)] = Field(4, description="a whole number from 1 to 65536")
    seed: Seed = Field(1, description=_ALLOWED_SEED)
    chain_groups: Literal["auto"] | Count = Field("auto", description='"auto" or a whole number of at least 1')
    chain_batches: Literal["auto"] | Count = Field("auto", description='"auto" or a whole number of at least 1')
    record: Literal["communication", "every-step"] = Field(
        "communication", description='"communication" or "every-step"'
    )
    segment_steps: Literal["auto"] | Annotated[Whole, Field(ge=1, le=MAX_STEPS)] = Field(
        "auto", description='"auto" or a whole number of at least 1'
    )
    time_limit: Literal["auto"] | Positive | None = Field(None, description='"auto" or a positive number of seconds')

    @property
    def burn_in_steps(self) -> int:
        """Return the number of steps dropped; a fraction is taken as the decimal that is written, rounded down."""
        if isinstance(self.burn_in, int):
            return self.burn_in
        return int(Fraction(repr(self.burn_in)) * self.steps)


class Output(Table):
    """[output]: what is kept."""

    draws_megabytes: Positive = Field(64.0, description=_ALLOWED_POSITIVE)
    thin: Count = Field(1, description=_ALLOWED_COUNT)
    covariance: Literal["auto", "full", "diagonal"] = Field("auto", description='"auto", "full" or "diagonal"')


class Config(Table):
    """A whole configuration; made by :func:`fald_hpc.config.load`, which also checks for contradictions."""

    target: Target = Field(description="a table [target]")
    data: Data = Field(description="a table [data]")
    sampler: Sampler = Field(default_factory=lambda: Sampler.model_validate({}), description="a table [sampler]")
    run: RunTable = Field(description="a table [run]")
    output: Output = Field(default_factory=lambda: Output.model_validate({}), description="a table [output]")

    _folder: Path = PrivateAttr(default=Path("."))

    @property
    def folder(self) -> Path:
        """Return the folder that relative paths refer to: that of the configuration file."""
        return self._folder

    def path(self, text: str) -> Path:
        """Return a path of the configuration, relative ones taken from the file's folder."""
        return self._folder / expand(text)

    @property
    def potential_options(self) -> dict[str, Any]:
        """Return the arguments of the potential's class (for ``custom``: function, dimension, prior_scale)."""
        from fald_hpc.config.names import potential_keys

        options = {key: getattr(self.target, key) for key in potential_keys(self.target.potential)}
        if "function" in options:
            file, _, name = options["function"].rpartition(":")
            options["function"] = f"{self.path(file)}:{name}"
        return options

    @property
    def sampler_options(self) -> dict[str, Any]:
        """Return the arguments of the sampler's class."""
        from fald_hpc.config.names import sampler_keys

        return {key: getattr(self.sampler, key) for key in sampler_keys(self.sampler.name)}

    @property
    def warnings(self) -> list[str]:
        """Return what is allowed but worth a word."""
        refresh = self.sampler_options.get("refresh_prob")
        if refresh is not None and refresh > self.sampler.comm_prob:
            return [
                f"refresh_prob = {refresh:g} is larger than comm_prob = {self.sampler.comm_prob:g}: "
                "the theory of VR-FALD* assumes refresh_prob <= comm_prob"
            ]
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved configuration as plain data (JSON, TOML), paths as written.

        Keys without a value are left out; ``from_dict`` makes the same configuration of it.
        """
        from fald_hpc.config.names import potential_keys

        tables: dict[str, Any] = self.model_dump(exclude_none=True)
        keys = ("potential", *potential_keys(self.target.potential))
        tables["target"] = {key: value for key, value in tables["target"].items() if key in keys}
        return tables
