"""Stage `aggregator`: phase 2 of FENS, over the cached logits of the clients' models."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.aggregation.averages import payload_bytes
from fedstage.algorithm.one_shot.aggregator_training import Samples, Trained, trainer
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule, sees_images
from fedstage.algorithm.one_shot.aggregators.votes import count
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, Quantised, traffic
from fedstage.data.samples import read_counts, read_info, read_labelled, read_line, read_owned
from fedstage.errors import FedstageError
from fedstage.plan.sharing import members
from fedstage.randomness import torch_generator
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tensors import load_tensors, save_table, save_tensors
from fedstage.training.devices import prepare
from fedstage.training.images import normalise

#: Whose samples the server's own are.
SERVER = -1


def aggregator(
    *,
    line: Path,
    models: list[Path],
    quantised: list[Path] | None = None,
    logits: list[Path] | None = None,
    data: Path | None = None,
    clients: Path,
    histogram: Path,
    validation_logits: list[Path] | None = None,
    validation: Path | None = None,
    info: Path,
    output: Path,
    rounds: Path,
) -> None:
    """Train or count the aggregator, and write it with a table of what travels.

    Nothing of the clients in `forget` is read: neither their models, nor their samples and counts.

    Parameters
    ----------
    models : list of Path
        The members' models, in the order of clients: only their sizes are used.
    quantised : list of Path, optional
        What is quantised of them, where that is what predicts: also for its size only.
    logits, data : optional
        Where the aggregator is fitted to samples: what the members say about the clients' samples
        of role `aggregator` (the server's own), and the data set with these samples.
    validation_logits, validation : optional
        The same for the clients' validation samples, where training may stop early.

    Raises
    ------
    FedstageError
        If training diverges, or the rule does not fit the data.
    """
    settings = read_line(line, OneShotLine)
    device, about = prepare(settings.numerics), read_info(info)
    samples = {}
    if logits:
        assert data is not None, "the graph gives both"
        samples = _samples(settings, logits, data, clients, "aggregator", about, device)
    held = None
    if validation_logits:
        assert validation is not None, "the graph gives both"
        parts = _samples(
            settings, validation_logits, validation, clients, "validation", about, device
        )
        held = _joined(list(parts.values()))
    trained = _fit(settings, _known(settings, histogram, about, samples), samples, held)
    sizes = [payload_bytes(load_tensors(path)[0]) for path in models]
    notes = {"members": members(settings), "round": trained.best}
    save_tensors(output, trained.parameters, notes)
    sent = _quantised(quantised) if quantised else None
    columns = traffic(settings, sizes, about["classes"], trained.parameters, trained.rounds, sent)
    save_table(rounds, columns, ROUNDS_SCHEMA)


def _quantised(paths: list[Path]) -> Quantised:
    read = [load_tensors(path) for path in paths]
    ranges = [notes["ranges"] for _, notes in read]
    return Quantised([payload_bytes(tensors) for tensors, _ in read], ranges)


def _fit(
    settings: OneShotLine,
    known: Knowledge,
    samples: dict[int, Samples],
    validation: Samples | None,
) -> Trained:
    generator = torch_generator(settings.seed, "aggregator", "initial")
    start = rule(settings.aggregator).parameters(settings.aggregator, known, generator)
    training = settings.aggregator_training
    if training is None:
        return Trained(start, 0, [])
    device = next(iter(samples.values())).logits.device
    placed = {name: value.to(device) for name, value in start.items()}
    combine = combination(settings.aggregator)
    return trainer(training).train(training, combine, placed, samples, validation, settings.seed)


def _known(
    settings: OneShotLine, histogram: Path, about: dict[str, Any], samples: dict[int, Samples]
) -> Knowledge:
    """Return what the rule starts from: label counts, and votes on the clients' samples."""
    trained_on = read_counts(histogram)
    counts = [
        [trained_on.get(client, {}).get(label, 0) for label in range(about["classes"])]
        for client in members(settings)
    ]
    votes = None
    if settings.aggregator.name == "voting":
        counted = [count(own.logits, own.labels) for own in samples.values()]
        votes = torch.stack(counted).sum(0)
    return Knowledge(torch.tensor(counts), tuple(about["shape"]), votes)


def _samples(
    settings: OneShotLine,
    logits: list[Path],
    data: Path,
    clients: Path,
    role: str,
    about: dict[str, Any],
    device: torch.device,
) -> dict[int, Samples]:
    """Return the samples of each member, or the server's own, as the aggregator sees them."""
    said = torch.stack([load_tensors(path)[0]["logits"] for path in logits]).to(device)
    training = settings.aggregator_training
    own = role == "aggregator" and training is not None and training.name == "proxy"
    chosen, owners = (None, None) if own else read_owned(clients, role)
    images, labels = read_labelled(data, chosen, device)
    pixels = normalise(images, about) if sees_images(settings.aggregator) else None
    every = Samples(said, labels, pixels)
    if owners is None:
        return {SERVER: every}
    found = {client: (owners == client).nonzero().flatten() for client in members(settings)}
    held = {client: every.at(index.to(device)) for client, index in found.items() if len(index)}
    if not held:
        raise FedstageError(
            f"{clients}: no sample of role {role!r} for any client that is not in forget = "
            f"{list(settings.forget)}"
        )
    return held


def _joined(parts: list[Samples]) -> Samples:
    """Return the samples of all clients as one set."""
    seen = [part.pixels for part in parts if part.pixels is not None]
    return Samples(
        torch.cat([part.logits for part in parts], dim=1),
        torch.cat([part.labels for part in parts]),
        torch.cat(seen) if seen else None,
    )
