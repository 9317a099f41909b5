"""Stage `aggregation`: from the updates of a group to its averaged model w_{t,k}."""

import logging
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from fedstage.algorithm.aggregation.averages import relative_distances
from fedstage.algorithm.aggregation.secure import MaskedRound, server_state
from fedstage.algorithm.aggregation.server import (
    GroupRound,
    next_client_state,
    next_model,
    next_model_by,
    traffic,
)
from fedstage.algorithm.exchange.caching import after_round, labels_sent
from fedstage.algorithm.exchange.updates import Update, place_of, read_updates
from fedstage.data.samples import read_info, read_public
from fedstage.errors import FedstageError
from fedstage.models.loading import asked, new_model, state_of
from fedstage.models.parts import kept_by_clients, merge, merged_names
from fedstage.plan.inputs import AggregationInputs
from fedstage.protocol.exchange import caches_labels, exchanges_features, exchanges_logits
from fedstage.protocol.groups import features_of, model_of
from fedstage.protocol.teaching import re_estimates, teaching_of
from fedstage.randomness import torch_generator
from fedstage.settings.models import Lower
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import open_tensors, save_tensors
from fedstage.training.batch_norm import re_estimate
from fedstage.training.devices import prepare
from fedstage.weights import Tensors, renamed, together, without

_LOGGER = logging.getLogger(__name__)

#: One row per participant of a round and group. Bytes count tensors, not file headers; a compressed
#: change counts as encoded.
PARTICIPANTS_SCHEMA = pa.schema(
    [
        ("round", pa.int32()),
        ("group", pa.int32()),
        ("participant", pa.int32()),
        ("client", pa.int32()),
        ("base_round", pa.int32()),  # of the global model that it started from
        ("samples", pa.int64()),
        ("steps", pa.int64()),
        ("loss", pa.float64()),  # mean of the last epoch; null where the update was dropped
        ("dropped", pa.bool_()),
        # ||w_n - W|| / ||W|| in percent, parameters without buffers: how far the trained model is
        # from its group's model before the aggregation. Null where it was dropped, or W is 0.
        ("distance", pa.float64()),
        ("bytes_up", pa.int64()),
        ("bytes_down", pa.int64()),
    ]
)


def aggregation(recipe: Recipe, read: AggregationInputs[Path], made: Made) -> None:
    """Average the updates of a group; write the model, its participants and the round state.

    Participants that diverged do not count; if all did, or there are none, the group keeps the
    model and the state that it started from, except for noise that hides clients. Depending on the
    settings, the parameters change by a step of a server optimiser, and the change of the global
    model is compressed, too. With secure aggregation, the outputs of `masked_input` and `unmask`
    are read instead of updates.

    The papers do not mention the running statistics of batch normalisation. By setting, they are

    - ``average``: averaged like the parameters, as in FedDF's code;
    - ``local``: never averaged. The new model keeps the statistics of `start`, the initial model's
      (mean 0, variance 1) until a distillation sets them on the public images, so that without one
      only the clients' models are useful. Each client continues from its own, which are in the
      round state: SiloBN (Andreux et al. 2020);
    - ``re_estimate``: computed with the averaged parameters on public images, as FedBE's code does
      for its student. On clients' data this would cost each client a second message.

    The same holds for `personal` parts of models as for ``local`` statistics.
    """
    info, received = read_info(read.info), read_updates(read.updates)
    secure = recipe.aggregation.secure
    masked = MaskedRound(read.public_keys, read.vectors, read.revealed) if secure else None
    metadata = masked.place if masked else place_of(read.updates[0])
    group = metadata["group"]
    architecture = model_of(recipe, group)
    whole, _ = open_tensors(read.start)
    old_state = open_tensors(read.state)[0] if read.state else {}
    personal, trained, merged = asked(
        architecture, info,
        lambda model: (
            kept_by_clients(recipe, model), [*dict(model.named_parameters())], merged_names(model)
        ),
    )  # fmt: skip
    begun, sums = without(whole, merged), renamed(whole, {name: name for name in merged})
    parameters = renamed(begun, {name: name for name in trained if name not in personal})
    sent, labels = _logits_sent(recipe, read.public, info, metadata["round"])
    features = _features_sent(recipe, group, info)
    group_round = GroupRound(
        recipe, group, received, begun, parameters, old_state, sent, features,
        _read_bases(read, received), labels, metadata["round"], read_updates(read.others), personal,
        sums,
    )  # fmt: skip
    mean = masked.mean(group_round) if masked else None
    weights, memory = next_model_by(group_round, mean.change) if mean else next_model(group_round)
    if merged:
        weights = together(weights, _products(group_round, architecture, info))
    if (mean or group_round.answered or group_round.private) and re_estimates(recipe):
        if read.public is None:
            raise FedstageError("public = null: aggregation.batch_norm = re_estimate needs images")
        device = prepare(recipe.numerics)
        model = new_model(architecture, info, device, recipe.numerics)
        model.load_state_dict(weights)
        images = read_public(read.public, info, device)
        re_estimate(model, images, info, recipe.numerics)
        weights = state_of(model)
    samples = (update.metadata["samples"] for update in group_round.answered)
    metadata["samples"] = mean.samples if mean else sum(samples)
    save_tensors(made["output"], weights, metadata)
    _log_loss(group_round.answered, metadata, made["output"].absolute().parents[2].name)
    _log_dropped(received, metadata)
    columns = masked.columns(group_round) if masked else _columns(group_round)
    save_table(made["participants"], columns, PARTICIPANTS_SCHEMA)
    if made["new_state"] is not None:
        kept = server_state(group_round, mean) if mean else next_client_state(group_round)
        save_tensors(made["new_state"], together(kept, memory), metadata)


def _products(group: GroupRound, architecture: Any, info: dict[str, Any]) -> Tensors:
    """Return the sums of products after a round, and the matrices that the next one begins with."""
    models = [update.weights for update in group.answered]
    key = (group.settings.seed, "aggregation", group.round, group.number, "products")
    draws = torch_generator(*key)
    return asked(
        architecture, info, lambda model: merge(model, group.merged, models, group.shares, draws)
    )


def _log_loss(answered: Sequence[Update], place: dict[str, int], line: str) -> None:
    """Log the training loss of a round, the mean over its participants' samples."""
    samples = sum(update.metadata["samples"] for update in answered)
    if samples:
        losses = (update.metadata["loss"] * update.metadata["samples"] for update in answered)
        _LOGGER.info(
            "round %d, group %d: training loss %.4f, %d participants (%s)",
            place["round"], place["group"], sum(losses) / samples, len(answered), line,
        )  # fmt: skip


def _log_dropped(received: Sequence[Update], place: dict[str, int]) -> None:
    """Warn of updates that were dropped, by their clients."""
    clients = [str(update.metadata["client"]) for update in received if update.diverged]
    if clients:
        _LOGGER.warning(
            "round %d, group %d: %d of %d updates dropped, because training diverged "
            "(on_divergence = drop): of client %s",
            place["round"], place["group"], len(clients), len(received), ", ".join(clients),
        )  # fmt: skip


def _read_bases(read: AggregationInputs[Path], received: Sequence[Update]) -> dict[int, Tensors]:
    """Return the models that updates started from, by their rounds."""
    paths = dict(zip(read.updates, read.bases, strict=True)) if read.bases else {}
    rounds = {update.metadata["base_round"]: paths[update.path] for update in received if paths}
    opened = map(open_tensors, rounds.values())
    return {round_: tensors for round_, (tensors, _) in zip(rounds, opened, strict=True)}


def _logits_sent(
    recipe: Recipe, public: Path | None, info: dict[str, Any], round_: int
) -> tuple[int, Callable[[int | None], int] | None]:
    """Return how many logits a participant sends and, with a cache, how many it receives.

    It sends the logits of a round's public samples, or of each of its own samples. The second
    result is a function of the rounds since it last took part.
    """
    classes = int(info["classes"])
    if exchanges_features(recipe):
        return classes, None
    if not exchanges_logits(recipe):
        return 0, None
    assert public is not None, "the graph gives it to such a recipe"
    samples = len(read_public(public, info, torch.device("cpu")))
    if not caches_labels(recipe):
        used = teaching_of(recipe).server.samples_a_round or samples
        return min(samples, used) * classes, None
    asked, _ = after_round(recipe, samples, round_)
    return len(asked) * classes, lambda since: classes * labels_sent(recipe, samples, round_, since)


def _features_sent(recipe: Recipe, group: int, info: dict[str, Any]) -> int:
    """Return how many numbers the features of a sample have, if they are sent."""
    if not exchanges_features(recipe):
        return 0
    model = model_of(recipe, group)
    assert isinstance(model, Lower), "checked by Recipe: clients' models give features"
    return prod(features_of(model, tuple(info["shape"])))


def _columns(group: GroupRound) -> dict[str, list[Any]]:
    updates = group.received
    columns: dict[str, list[Any]] = {
        name: [update.metadata.get(name) for update in updates]
        for name in ("round", "group", "participant", "client", "base_round", "samples", "loss")
    }
    columns["steps"] = [
        update.metadata.get("steps", update.metadata.get("diverged_at")) for update in updates
    ]
    columns["dropped"] = [update.diverged for update in updates]
    columns["distance"] = relative_distances(
        [update.weights for update in updates], group.parameters
    )
    return columns | traffic(group)
