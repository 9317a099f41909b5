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
from fedstage.plan.inputs import AggregatorInputs
from fedstage.protocol.one_shot import members
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.weights import Weights


def aggregator(recipe: OneShotRecipe, read: AggregatorInputs[Path], made: Made) -> None:
    """Train or compute the aggregator, and write it with a table of its traffic.

    No data of the clients in `forget` are read: neither their models nor their samples and counts.

    Parameters
    ----------
    snapshots : Path
        Output: the aggregator after every fifth round of its training, each tensor a stack of them.

    Raises
    ------
    FedstageError
        If training diverges, or the rule does not fit the data.
    """
    device, info = begin(recipe, read.info)

    def samples_of(role: str, paths: list[Path], data: Path | None) -> dict[int, Samples]:
        if data is None:
            return {}
        return read_role(recipe, role, paths, data, read.clients, info, device)

    samples = samples_of("aggregator", read.logits, read.data)
    held_out = samples_of("validation", read.validation_logits, read.validation)
    everyone, counts = members(recipe), read_counts(read.histogram)
    chosen = chosen_members(recipe, counts, held_out, info) if recipe.members else everyone
    places = torch.tensor([everyone.index(client) for client in chosen], device=device)
    samples = {client: own.of_members(places) for client, own in samples.items()}
    own = [read.models[place] for place in places.tolist()]
    known = knowledge(recipe, chosen, counts, info, samples, own)
    trained = fit(recipe, chosen, known, samples)
    metadata = {"members": chosen, "round": len(trained.rounds)}
    save_tensors(made["output"], trained.parameters, metadata)
    save_tensors(made["snapshots"], *_stacked(trained.kept))
    sizes = [payload_bytes(load_tensors(path)[0]) for path in read.models]
    sent = _quantised(read.quantised) if read.quantised else None
    columns = traffic(recipe, sizes, places.tolist(), info["classes"], trained, sent)
    save_table(made["rounds"], columns, ROUNDS_SCHEMA)


def _stacked(kept: Mapping[int, Weights]) -> tuple[Weights, dict[str, list[int]]]:
    """Return the parameters of several rounds as one tensor per name, and the rounds."""
    names = next(iter(kept.values()), {})
    stacks = {name: torch.stack([one[name] for one in kept.values()]) for name in names}
    return stacks, {"rounds": list(kept)}


def _quantised(paths: list[Path]) -> Quantised:
    read = [load_tensors(path) for path in paths]
    ranges = [metadata["ranges"] for _, metadata in read]
    return Quantised([payload_bytes(tensors) for tensors, _ in read], ranges)
