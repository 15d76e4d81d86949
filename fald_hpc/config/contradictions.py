"""Keys that are right one by one and wrong together."""

import math
from dataclasses import MISSING
from typing import Any

from fald_hpc.config.names import potential_keys, sampler_keys
from fald_hpc.config.schema import Config
from fald_hpc.errors import UserError

GAUSSIAN = "gaussian"


def check(config: Config) -> None:
    """Raise UserError for the first contradiction."""
    _target(config)
    _data(config)
    _gaussian(config)
    _sampler(config)
    _run(config)


def _target(config: Config) -> None:
    target = config.target
    for key, default in potential_keys(target.potential).items():
        if default is MISSING and getattr(target, key, None) is None:
            raise UserError(f"[target] {key} is needed with potential = {target.potential!r}")
    if target.potential == "softmax" and "classes" not in target.model_fields_set:
        raise UserError(
            "[target] classes is needed with potential = 'softmax': the number of classes, labels 0, 1, ..."
        )
    if target.potential == "custom":
        file, mark, name = (target.function or "").rpartition(":")
        if not mark or not file.endswith(".py") or not name.isidentifier():
            raise UserError(
                f'[target] function = {target.function!r} must be a file and a name, as in "model.py:gradient"'
            )
    if config.data.offset is not None and target.potential not in ("poisson", "custom"):
        raise UserError(f"[data] offset has no meaning with potential = {target.potential!r}; leave it out")


def _data(config: Config) -> None:
    data = config.data
    sources = [key for key in ("example", "folder", "file") if getattr(data, key) is not None]
    if len(sources) != 1:
        found = " and ".join(sources) if sources else "none of them"
        raise UserError(f"[data] needs exactly one of example, folder and file; it has {found}")
    source = sources[0]
    if data.client_column is not None and data.partition is not None:
        raise UserError("[data] has both client_column and [data.partition]; keep one")
    if source == "file" and data.client_column is None and data.partition is None:
        raise UserError("[data] file needs client_column or a table [data.partition], to say which rows a client holds")
    for key in ("client_column", "partition"):
        if source != "file" and getattr(data, key) is not None:
            raise UserError(f"[data] {key} goes with file = ..., not with {source}; leave it out")
    if source == "example":
        for key in ("label", "features", "weight", "offset"):
            if getattr(data, key) is not None:
                raise UserError(f"[data] {key} has no meaning with a built-in example; leave it out")
    partition = data.partition
    if partition is not None:
        if partition.alpha is not None and partition.scheme not in ("dirichlet", "quantity"):
            raise UserError(f"[data.partition] alpha has no meaning with scheme = {partition.scheme!r}; leave it out")
        if (partition.classes_per_client is not None) != (partition.scheme == "classes"):
            raise UserError("[data.partition] classes_per_client goes with scheme = 'classes', which needs it")
    if isinstance(data.prior_shares, list) and abs(math.fsum(data.prior_shares) - 1.0) > 1e-9:
        raise UserError(f"[data] prior_shares must sum to 1; the sum is {math.fsum(data.prior_shares):.12g}")
    _roles(data)


def _roles(data: Any) -> None:
    """Refuse a column with two roles."""
    named = [data.label, data.weight, data.offset, data.client_column, *(data.features or ())]
    for column in named:
        if column is not None and named.count(column) > 1:
            raise UserError(f"[data] the column {column!r} is named twice; label, features and the rest must differ")


def _gaussian(config: Config) -> None:
    """Hold that Gaussian data go with the Gaussian potential and nothing else."""
    from fald_hpc.data.builtin import EXAMPLES, GAUSSIAN_EXAMPLES

    data = config.data
    gaussian = config.target.potential == GAUSSIAN
    if data.example is not None:
        if data.example not in EXAMPLES:
            raise UserError(f"[data] example = {data.example!r} is unknown; it must be one of {', '.join(EXAMPLES)}")
        if (data.example in GAUSSIAN_EXAMPLES) != gaussian:
            suits = "'gaussian'" if data.example in GAUSSIAN_EXAMPLES else "a regression, such as 'logistic'"
            raise UserError(
                f"[target] potential = {config.target.potential!r} does not suit [data] example = {data.example!r}; "
                f"it must be {suits}"
            )
    if not gaussian:
        return
    if data.file is not None:
        raise UserError(
            "[data] file does not go with potential = 'gaussian'; use folder, with one .npz file per client"
        )
    for key in ("label", "features", "weight"):
        if getattr(data, key) is not None:
            raise UserError(f"[data] {key} has no meaning with potential = 'gaussian'; leave it out")
    if data.standardise:
        raise UserError("[data] standardise = true has no meaning with potential = 'gaussian'; leave it out")
    if config.sampler.batch_size != "full":
        raise UserError("[sampler] batch_size must be \"full\" with potential = 'gaussian', whose clients have no rows")


def _sampler(config: Config) -> None:
    for key, default in sampler_keys(config.sampler.name).items():
        if default is MISSING and getattr(config.sampler, key, None) is None:
            raise UserError(f"[sampler] {key} is needed with name = {config.sampler.name!r}")


def _run(config: Config) -> None:
    run = config.run
    if run.burn_in_steps >= run.steps:
        raise UserError(f"[run] burn_in = {run.burn_in!r} leaves nothing of steps = {run.steps}; make it smaller")
    if run.chain_groups != "auto" and run.chain_groups > run.chains:
        raise UserError(f"[run] chain_groups = {run.chain_groups} is more than chains = {run.chains}; make it smaller")
    if run.chain_batches not in ("auto", 1) and config.sampler.schedule == "independent":
        raise UserError(
            f"[run] chain_batches = {run.chain_batches} needs [sampler] schedule = 'shared': with coins of their own, chains "
            "send their messages one after another; leave chain_batches out"
        )
