"""Stage `aggregator`: phase 2 of FENS, over the cached logits of the clients' models."""

from collections.abc import Mapping
from pathlib import Path

import torch

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.one_shot.aggregator_training import Samples
from fedstage.algorithm.one_shot.fitting import fit, knowledge, read_role
from fedstage.algorithm.one_shot.selections import chosen_members
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, Quantised, traffic
from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_info
from fedstage.plan.one_shot_sharing import members
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.storage.yaml_files import read_line
from fedstage.training.devices import prepare
from fedstage.weights import Weights


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
    snapshots: Path,
    rounds: Path,
) -> None:
    """Train or count the aggregator, and write it with a table of its traffic.

    Nothing of the clients in `forget` is read: neither their models, nor their samples and counts.

    Parameters
    ----------
    models, quantised : list of Path
        The members' models, in the order of clients, and where these predict, their quantised
        ones: of these only their sizes are used, and of those the prototypes that they have.
    logits, data : optional
        Where the aggregator is fitted to samples: the members' logits on the clients' samples of
        role `aggregator` (or the server's own), and the data set with these samples.
    validation_logits, validation : optional
        The same for the clients' validation samples, where training may stop early.
    snapshots : Path
        Output: the aggregator after every fifth round of its training, each tensor a stack of them.

    Raises
    ------
    FedstageError
        If training diverges, or the rule does not fit the data.
    """
    settings, dataset_info = read_line(line, OneShotLine), read_info(info)
    device = prepare(settings.numerics)

    def read(role: str, paths: list[Path] | None, samples: Path | None) -> dict[int, Samples]:
        if not paths:
            return {}
        assert samples is not None, "the graph gives both"
        return read_role(settings, role, paths, samples, clients, dataset_info, device)

    samples = read("aggregator", logits, data)
    held_out = read("validation", validation_logits, validation)
    everyone, counts = members(settings), read_counts(histogram)
    chosen = chosen_members(settings, counts, held_out, dataset_info)
    places = torch.tensor([everyone.index(client) for client in chosen], device=device)
    samples = {client: own.of_members(places) for client, own in samples.items()}
    validation_samples = [own.of_members(places) for own in held_out.values()]
    own = [models[place] for place in places.tolist()]
    known = knowledge(settings, chosen, counts, dataset_info, samples, own)
    trained = fit(settings, chosen, known, samples, validation_samples)
    metadata = {"members": chosen, "round": trained.best}
    save_tensors(output, trained.parameters, metadata)
    save_tensors(snapshots, *_stacked(trained.kept))
    sizes = [payload_bytes(load_tensors(path)[0]) for path in models]
    sent = _quantised(quantised) if quantised else None
    columns = traffic(settings, sizes, places.tolist(), dataset_info["classes"], trained, sent)
    save_table(rounds, columns, ROUNDS_SCHEMA)


def _stacked(kept: Mapping[int, Weights]) -> tuple[Weights, dict[str, list[int]]]:
    """Return the parameters of several rounds as one tensor a name, and the rounds."""
    names = next(iter(kept.values()), {})
    stacks = {name: torch.stack([one[name] for one in kept.values()]) for name in names}
    return stacks, {"rounds": list(kept)}


def _quantised(paths: list[Path]) -> Quantised:
    read = [load_tensors(path) for path in paths]
    ranges = [metadata["ranges"] for _, metadata in read]
    return Quantised([payload_bytes(tensors) for tensors, _ in read], ranges)
