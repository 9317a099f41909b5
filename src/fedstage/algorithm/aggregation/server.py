"""The server's work at the end of a round: from the updates of a group to w_{t,k}.

    updates -> average, or a step of the server's optimiser -> compressed change -> w_{t,k}

together with the next round state and the bytes sent. One file because each step needs the former.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fedstage.algorithm.aggregation.asynchronous import blend, changes_since, discounts_of
from fedstage.algorithm.aggregation.averages import (
    average_weights,
    client_weights,
    mean_change,
    move_towards,
)
from fedstage.algorithm.aggregation.private_mean import private_mean
from fedstage.algorithm.aggregation.rules import combined
from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.exchange import round_state
from fedstage.algorithm.exchange.compression import transmit
from fedstage.algorithm.exchange.traffic import bytes_down, bytes_up, payload_bytes
from fedstage.algorithm.exchange.updates import Update, answered
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer
from fedstage.errors import FedstageError
from fedstage.protocol.digests import own_key
from fedstage.protocol.exchange import (
    caches_labels,
    exchanges_features,
    exchanges_logits,
    history,
    is_stale,
    keeps_parts,
    models_sent,
    receives_server_logits,
    weights_travel,
)
from fedstage.protocol.groups import expected_participants
from fedstage.protocol.privacy import client_privacy
from fedstage.protocol.rounds import was_taught
from fedstage.randomness import torch_generator
from fedstage.settings.aggregation import ModelRule
from fedstage.settings.privacy import ClientPrivacy
from fedstage.settings.recipes import Recipe
from fedstage.weights import Tensors, Weights, together, without


@dataclass(frozen=True)
class GroupRound:
    """The inputs to the aggregation of a group's round."""

    settings: Recipe
    number: int  # k
    received: list[Update]  # of all participants, with those that diverged
    start: Tensors  # w*_{t-1,k}, even if a participant started from an older model
    parameters: Tensors  # its part without buffers, and without what clients keep
    state: Tensors  # the round state of the round before
    # Where no weights are sent: how many logits a participant sends, in total or (with features)
    # per sample, and the size of a sample's features.
    logits: int = 0
    features: int = 0
    # Where stale updates count by their changes: the models that they started from, by round.
    bases: Mapping[int, Tensors] = field(default_factory=dict)
    # Where labels are kept: how many logits of others a participant receives, by how many rounds
    # ago it last took part.
    received_before: Callable[[int | None], int] | None = None
    round: int = 0  # t, for which noise is drawn
    # The updates of other groups, where the server learns something from all.
    others: list[Update] = field(default_factory=list)
    kept: Collection[str] = ()  # the tensors that stay with each client
    merged: Tensors = field(default_factory=dict)  # the sums of products, which the start also has

    @cached_property
    def answered(self) -> list[Update]:
        """The updates of participants that did not diverge."""
        return answered(self.received)

    @property
    def shares(self) -> list[float]:
        """The share p_n of each of these updates in an average."""
        weights = client_weights(self.settings.aggregation, self.answered)
        return [weight / sum(weights) for weight in weights]

    def sent(self, weights: Tensors) -> Tensors:
        """Return what of a model is sent."""
        return without(weights, self.kept)

    @property
    def private(self) -> ClientPrivacy | None:
        """The noise that hides clients, if any does."""
        return client_privacy(self.settings)

    @property
    def trainer(self) -> LocalTrainer[Any]:
        """The local trainer, for what the server does with its payloads."""
        return local_trainer(self.settings.local)


def next_model(group: GroupRound) -> tuple[Tensors, Tensors]:
    """Return w_{t,k}, and moments and residuals that the server keeps for the next round.

    The updates, the start and the state are read one tensor at a time.

    If all participants diverged, if there are none, or if no weights are sent, both stay unchanged.
    Where noise hides clients, it is added even if there are none, to hide that, too. Running
    statistics that are to be estimated are not estimated yet.
    """
    hidden = group.private is not None
    if not (group.answered or hidden) or not weights_travel(group.settings):
        return group.start, round_state.server_memory(group.state)
    averages = group.settings.aggregation.rule.name == "average" and not hidden
    model, moments = _step(group) if averages else _towards(group, _target(group))
    residual: Weights = {}
    compression = group.settings.compression
    if compression.name == "stc":
        before = round_state.residual_of(group.state, "server")
        for name, start in group.parameters.items():
            own = {name: before[name]} if name in before else {}
            sent, left = transmit(compression, {name: start}, {name: model[name]}, own)
            model |= sent
            residual |= left
    model |= {name: group.start[name] for name in group.kept}
    return model, round_state.next_server_memory(moments, residual)


def _buffers(group: GroupRound) -> list[str]:
    """Return the names of the weights that are not parameters."""
    return [name for name in group.start if name not in group.parameters]


def _step(group: GroupRound) -> tuple[Weights, Weights]:
    """Return the average, its parameters moved by the server's step, and the step's moments."""
    settings, updates = group.settings.aggregation, group.answered
    weights, shares = client_weights(settings, updates), group.shares
    models = [update.weights for update in updates]
    scales = group.trainer.scales([update.payload for update in updates], shares)
    discounts = discounts_of(settings, updates) if is_stale(group.settings) else None
    if settings.server_optimizer.name == "average" and scales is None and discounts is None:
        average = average_weights(models, weights)
        return move_towards(group.start, average, settings.learning_rate, group.parameters), {}
    scaled = [a * b for a, b in zip(shares, scales or [1.0] * len(shares), strict=True)]
    factors = [settings.learning_rate * factor for factor in scaled]
    if discounts is None:
        buffers = average_weights(models, weights, _buffers(group))
        change = mean_change(group.start, models, factors, group.parameters)
    else:
        buffers = blend(group.start, models, shares, discounts, _buffers(group))
        factors = [a * b for a, b in zip(factors, discounts, strict=True)]
        starts = [group.bases.get(update.metadata["base_round"], group.start) for update in updates]
        change = changes_since(starts, models, factors, group.parameters)
    return _moved(group, buffers, change)


def _target(group: GroupRound) -> Weights:
    """Return the model that a rule computes from all models, or their mean with noise."""
    return _by_rule(group) if group.private is None else _with_noise(group, group.private)


def _with_noise(group: GroupRound, noise: ClientPrivacy) -> Weights:
    """Return the mean of clipped changes with noise; buffers stay as they were."""
    recipe, k = group.settings, group.number
    for update in group.answered:
        if update.payload:
            raise FedstageError(
                f"local = {recipe.local.name}: sends {min(update.payload)!r} in addition to "
                "weights, which privacy.client does not clip; choose another local trainer"
            )
    key = (recipe.seed, own_key(recipe), "aggregation", group.round, k, "noise")
    expected = expected_participants(recipe, k)
    models = [update.weights for update in group.answered]
    mean = private_mean(noise, models, group.parameters, expected, torch_generator(*key))
    return dict(group.start) | mean


def _by_rule(group: GroupRound) -> Weights:
    """Return the model that a rule computes from all models."""
    settings, updates = group.settings.aggregation, group.answered
    rule = settings.rule
    assert isinstance(rule, ModelRule), "averages have a path of their own"
    shares = group.shares
    if group.trainer.scales([update.payload for update in updates], shares) is not None:
        raise FedstageError(
            f"aggregation.rule = {rule.name!r}: not with local = "
            f"{group.settings.local.name}, which scales the changes of an average"
        )
    models = [dict(update.weights) for update in updates]
    return combined(rule, models, shares, dict(group.parameters))


def _towards(group: GroupRound, model: Weights) -> tuple[Weights, Weights]:
    """Return a model with its parameters moved by the server's step, and the step's moments."""
    settings = group.settings.aggregation
    if settings.server_optimizer.name == "average":
        return move_towards(group.start, model, settings.learning_rate, group.parameters), {}
    return _moved(group, model, mean_change(group.start, [model], [1.0], group.parameters))


def _moved(group: GroupRound, rest: Weights, change: Tensors) -> tuple[Weights, Weights]:
    """Return a model with its parameters moved by the server's optimiser, and the moments.

    Buffers are taken from `rest`.
    """
    optimiser = group.settings.aggregation.server_optimizer
    before = round_state.optimiser_state(group.state)
    share = expected_participants(group.settings, group.number) / group.settings.clients
    moved, moments = server_step(optimiser, group.parameters, change, before, share)
    return rest | moved, moments


def next_model_by(group: GroupRound, change: Tensors) -> tuple[Tensors, Tensors]:
    """Return w_{t,k} and the server's part of the next round state, from the mean change alone.

    Buffers stay as they were.
    """
    rate = group.settings.aggregation.learning_rate
    moved = {name: rate * value for name, value in change.items()}
    model, moments = _moved(group, {name: group.start[name] for name in _buffers(group)}, moved)
    return model, round_state.next_server_memory(moments, {})


def next_client_state(group: GroupRound) -> Tensors:
    """Return the next state of local trainers, such as SCAFFOLD's c and c_i, and of clients."""
    settings, state, updates = group.settings, group.state, group.answered
    variates = round_state.variates(state)
    own = group.trainer.next_state(variates, updates, settings.clients)
    if settings.local.shares_state:
        key = (settings.seed, "aggregation", group.round, "shared")
        both = (*updates, *answered(group.others))
        everyone = sorted(both, key=lambda update: update.metadata["participant"])
        shared = group.trainer.shared(variates, everyone, key) if everyone else variates
        own = together(own, round_state.of_server(shared))
    lost = own.keys() - round_state.variates(own).keys()
    if lost:
        raise FedstageError(
            f"local = {settings.local.name}: next_state returns {min(lost)!r}: names must begin "
            "with server/ or client/ID/, by which clients read their state"
        )
    after = [own, round_state.next_residuals(state, updates)]
    if keeps_parts(settings):
        after.append(round_state.next_parts(state, updates, group.kept))
    if settings.compression.name == "stc" or caches_labels(settings):
        after.append(round_state.next_received(state, group.received))
    return together(*after)


def traffic(group: GroupRound) -> dict[str, list[Any]]:
    """Return the bytes that each participant sent and received, as columns."""
    if exchanges_logits(group.settings):
        return _traffic_of_logits(group)
    if exchanges_features(group.settings):
        return _traffic_of_features(group)
    compression, parameters = group.settings.compression, group.parameters
    start = together(group.sent(group.start), group.merged)
    # The bytes of a message do not depend on its values, so the group's own state will do.
    payload = payload_bytes(group.trainer.sent_down(parameters, round_state.variates(group.state)))
    if not weights_travel(group.settings):
        alone = [payload_bytes(update.payload) for update in group.received]
        return {"bytes_up": alone, "bytes_down": [payload] * len(alone)}
    up, down = [], []
    for update in group.received:
        client, round_ = update.metadata["client"], update.metadata["round"]
        missed = round_state.rounds_since(group.state, client, round_)
        sent = replace(update, weights=group.sent(update.weights))
        up.append(bytes_up(compression, sent, parameters))
        older = _older_models_sent(group.settings, update) * payload_bytes(start)
        down.append(payload + older + bytes_down(compression, missed, start, parameters))
    return {"bytes_up": up, "bytes_down": down}


def _older_models_sent(recipe: Recipe, update: Update) -> int:
    """Return how many models a participant gets in addition to its start."""
    if not history(recipe.local):
        return 0
    # The model of round 0 has learnt nothing, so it does not teach.
    return models_sent(recipe.local, min(history(recipe.local), update.metadata["base_round"])) - 1


def _traffic_of_logits(group: GroupRound) -> dict[str, list[Any]]:
    """Return the bytes of 32-bit logits: in the first round participants receive none."""
    size = 4 * group.logits
    return {
        "bytes_up": [0 if update.diverged else size for update in group.received],
        "bytes_down": [4 * _logits_received(group, update) for update in group.received],
    }


def _logits_received(group: GroupRound, update: Update) -> int:
    """Return how many logits a participant receives: the last round's, or all that it lacks."""
    client, round_ = int(update.metadata["client"]), int(update.metadata["round"])
    if group.received_before is None:
        server = receives_server_logits(group.settings)
        return group.logits * (was_taught(group.settings, round_ - 1, 0) if server else round_ > 1)
    return group.received_before(round_state.rounds_since(group.state, client, round_))


def _traffic_of_features(group: GroupRound) -> dict[str, list[Any]]:
    """Return the bytes of all samples' features, logits and labels sent up, and logits sent down.

    Numbers and labels have 32 bits. In the first round the server sends nothing.
    """
    up, down = [], []
    for update in group.received:
        samples, later = update.metadata["samples"], update.metadata["round"] > 1
        up.append(0 if update.diverged else 4 * samples * (group.features + group.logits + 1))
        down.append(4 * samples * group.logits * later)
    return {"bytes_up": up, "bytes_down": down}
