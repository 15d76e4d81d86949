"""A study made ready on every rank: layout, clients, parameters, mode and step size; nothing has been sampled yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fald_hpc import identity, step_size
from fald_hpc import layout as layouts
from fald_hpc.chains import Schedule, batch_sizes, group_communicator
from fald_hpc.comm import Serial
from fald_hpc.data import standardise as scaling
from fald_hpc.data.clients import Clients
from fald_hpc.data.records import ClientData, fingerprint
from fald_hpc.errors import UserError
from fald_hpc.federation import Federation
from fald_hpc.kernels import noise
from fald_hpc.mode import find_mode
from fald_hpc.potentials.base import Potential
from fald_hpc.reduce import mean_over_clients
from fald_hpc.samplers.base import Sampler


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be sampled: everything that decides the numbers, and nothing that depends on ranks or time.

    Attributes
    ----------
    potential, clients, sampler
        Model, data, algorithm.
    steps, chains, seed : int
        Iterations, chains, root seed.
    schedule : Schedule
        Events and records.
    init : str or array
        See :func:`fald_hpc.start.initial`.
    standardise : bool
        Scale the features by exact moments over all clients; undone in the results.
    """

    potential: Potential
    clients: Clients
    sampler: Sampler
    steps: int
    chains: int
    seed: int
    schedule: Schedule
    init: Any = "dispersed"
    standardise: bool = False


@dataclass(frozen=True, eq=False)
class Study:
    """A request on this rank.

    Attributes
    ----------
    request : Request
        As given.
    sampler : Sampler
        With a number as step size.
    layout : Layout
        The process grid.
    communicator, group : communicator
        All ranks, and those that share this rank's chains.
    federation : Federation
        This rank's clients.
    names : list of str
        The d parameters.
    mode : float64[d] or None
        The federated mode where it was needed.
    scale : (mean, sd) or None
        The federated standardisation of the features.
    fingerprints : list of str
        Hashes of all clients' data, on rank 0.
    notes : list of str
        Warnings to show once.
    """

    request: Request
    sampler: Sampler
    layout: layouts.Layout
    communicator: Serial
    group: Serial
    federation: Federation
    names: list[str]
    mode: np.ndarray | None
    scale: tuple[np.ndarray, np.ndarray] | None
    fingerprints: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def key(self) -> np.uint64:
        """Generator key."""
        return noise.key(self.request.seed)

    def original(self, values: np.ndarray) -> np.ndarray:
        """Return parameters in the units of the data from parameters of the standardised features: float64[..., d]."""
        if self.scale is None:
            return values
        intercept = getattr(self.request.potential, "intercept", False)
        return scaling.undo(values, *self.scale, intercept)


def prepare(
    request: Request,
    communicator: Serial,
    chain_groups: int | str = "auto",
    known_step_size: float | None = None,
    need_mode: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Study:
    """Load this rank's clients and compute, with all ranks, what sampling needs.

    Parameters
    ----------
    request : Request
        The same on every rank.
    communicator : communicator
        All ranks.
    chain_groups : int or "auto"
        See :mod:`fald_hpc.layout`.
    known_step_size : float, optional
        Step size of the first start of a resumed run: "auto" is then not evaluated again.
    need_mode : bool
        False for a resumed run, which does not start anew.
    options : dict, optional
        Further settings that all ranks must agree on, by name.

    Raises
    ------
    UserError
        On all ranks, with the same sentence.
    """
    error: BaseException | None = None
    try:
        layout = layouts.choose(communicator.size, len(request.clients), request.chains, chain_groups)
        if request.schedule.every_step and layout.client_groups > 1:
            raise UserError(
                'record = "every-step" needs all clients of a chain on one rank: start at most as many ranks as there '
                f"are chains ({request.chains}) and set chain_groups to the number of ranks."
            )
        _check_limits(request)
    except UserError as found:
        error = found
    communicator.together(error)
    seen = {"the content of data.file": request.clients.digest, "run.steps": request.steps, **(options or {})}
    _same_everywhere(identity.settings(request) | seen, communicator)

    group = group_communicator(communicator, layout)
    mine = layout.clients(communicator.rank)
    data: list[Any] = []
    try:
        data = request.clients.load(mine)
        for client in data:
            request.potential.check(client)
    except UserError as found:
        error = found
    communicator.together(error)
    features = _agreed_features(request, data, communicator)
    fingerprints = _fingerprints(data, request.clients.ids, layout, communicator)
    notes = _warnings(request, data, features, group)
    scale = None
    if request.standardise:
        data, scale = _standardise(request, data, features, group)

    b = len(request.clients)
    shares = np.full(b, 1.0 / b) if request.clients.prior_shares is None else request.clients.prior_shares
    try:
        problem = request.potential.pack(data, shares[mine.start : mine.stop])
    except UserError as found:
        error = found
    communicator.together(error)
    rows = np.array([c.features.shape[0] if isinstance(c, ClientData) else 0 for c in data], np.int64)
    names = request.potential.parameter_names(features)
    federation = Federation(request.potential, problem, rows, b, mine.start, names, group)

    mode = None
    sampler = request.sampler
    automatic = sampler.step_size == "auto" and known_step_size is None
    if automatic or (need_mode and isinstance(request.init, str) and request.init != "prior"):
        mode = find_mode(federation)
    if automatic:
        assert mode is not None
        curvature = step_size.measure(federation, mode, batch_sizes(rows, sampler.batch_size))
        sampler = replace(sampler, step_size=step_size.choose(curvature, sampler))
    elif known_step_size is not None:
        sampler = replace(sampler, step_size=known_step_size)
    return Study(
        request, sampler, layout, communicator, group, federation, names, mode, scale, fingerprints, notes
    )


def _check_limits(request: Request) -> None:
    """Refuse what the counters of the generator cannot address."""
    if request.steps >= noise.MAX_STEPS:
        raise UserError(f"steps = {request.steps}: at most {noise.MAX_STEPS - 1} iterations can be addressed.")
    if len(request.clients) > noise.MAX_CLIENTS:
        raise UserError(f"{len(request.clients)} clients: at most {noise.MAX_CLIENTS} can be addressed.")
    if request.chains > noise.MAX_CHAINS:
        raise UserError(f"chains = {request.chains}: at most {noise.MAX_CHAINS} can be addressed.")


def _same_everywhere(settings: dict[str, Any], communicator: Serial) -> None:
    """Refuse ranks that see different settings or package versions, naming the first one that differs."""
    seen = communicator.collect(settings)
    error = None
    for rank, other in enumerate(seen or []):
        found = identity.first_difference(seen[0], other) if seen else None
        if found is not None:
            name, first, here = found
            error = UserError(
                f"rank {rank} has {name} = {here} where rank 0 has {first}: start all ranks with the same command, "
                "files and environment."
            )
            break
    communicator.together(error)


def _agreed_features(request: Request, data: list[Any], communicator: Serial) -> list[str]:
    """Return the features' names (or those of the coordinates), equal on all ranks."""
    names = list(request.clients.feature_names)
    if not names and data and not isinstance(data[0], ClientData):
        names = [f"x{j}" for j in range(data[0].mean.size)]
    found = communicator.collect([names, [client.id for client in data[:1]]])
    error = None
    if found is not None:
        for other, ids in found:
            if other != found[0][0]:
                error = UserError(
                    f"client {ids[0]} has the columns {', '.join(other[:6])} and client {found[0][1][0]} has "
                    f"{', '.join(found[0][0][:6])}: all clients need the same columns in the same order."
                )
    communicator.together(error)
    return names


def _standardise(
    request: Request, data: list[Any], features: list[str], group: Serial
) -> tuple[list[Any], tuple[np.ndarray, np.ndarray]]:
    if not request.potential.takes_rows:
        raise UserError("standardise = true: Gaussian clients have no columns to standardise; remove it.")
    b = len(request.clients)
    intercept = getattr(request.potential, "intercept", False)
    columns = [client.features for client in data]
    fitted = scaling.fit(
        columns,
        add=lambda arrays: mean_over_clients(np.array(arrays), b, group) * b,
        maximum=group.maximum,
        intercept=intercept,
        n_features=len(features),
    )
    scaled = [replace(client, features=scaling.apply(client.features, fitted.mean, fitted.sd)) for client in data]
    return scaled, (fitted.mean, fitted.sd)


def _fingerprints(data: list[Any], ids: Sequence[str], layout: layouts.Layout, communicator: Serial) -> list[str]:
    """Return the hashes of all clients' data on rank 0; refuse chain groups that see different data of a client."""
    parts = communicator.collect([fingerprint(client) for client in data])
    error: UserError | None = None
    first: dict[int, str] = {}
    for rank, part in enumerate(parts or []):
        for client, digest in zip(layout.clients(rank), part, strict=True):
            if first.setdefault(client, digest) != digest and error is None:
                error = UserError(
                    f"rank {rank} sees other data of client {ids[client]} than the ranks before it: give all ranks the same "
                    "files."
                )
    communicator.together(error)
    return list(first.values())


def _warnings(request: Request, data: list[Any], features: list[str], group: Serial) -> list[str]:
    """Return what is allowed but worth a word, the same on all ranks."""
    notes = []
    refresh = getattr(request.sampler, "refresh_prob", None)
    if refresh is not None and refresh > request.sampler.comm_prob:
        notes.append(
            f"refresh_prob = {refresh:g} is larger than comm_prob = {request.sampler.comm_prob:g}: the theory of VR-FALD* "
            "assumes refresh_prob <= comm_prob"
        )
    if request.potential.takes_rows and not request.standardise:
        local = np.max([scaling.extremes(client.features) for client in data], axis=0)
        largest = group.maximum(local)[2 * len(features) :]
        note = scaling.scale_warning(largest, features)
        if note is not None:
            notes.append(note)
    return notes
