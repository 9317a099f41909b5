"""Stage `local_training`: one participant of a round trains from its group's global model."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.exchange.compression import transmit
from fedstage.algorithm.exchange.round_state import (
    own_statistics,
    read_state,
    residual_of,
    variates,
)
from fedstage.algorithm.local_trainers import Trained, local_trainer
from fedstage.data.samples import (
    fill_model,
    new_model,
    parameters_of,
    read_info,
    read_labelled,
    read_line,
    read_samples,
    state_of,
)
from fedstage.errors import FedstageError
from fedstage.plan.sharing import model_of
from fedstage.randomness import torch_generator
from fedstage.settings.lines import Line
from fedstage.storage.tensors import Weights, load_table, load_tensors, save_tensors
from fedstage.training.batches import client_batches
from fedstage.training.devices import prepare
from fedstage.training.loop import Outcome, full_gradient, training
from fedstage.training.losses import client_loss
from fedstage.training.streams import finish


def local_training(
    *,
    line: Path,
    round: int,
    group: int,
    slot: int,
    data: Path,
    info: Path,
    clients: Path,
    participation: Path,
    start: Path,
    state: list[Path] | None = None,
    output: Path,
) -> None:
    """Train the client that is slot `slot` of round `round`, and write its update.

    The update holds the trained weights as ``model/NAME`` and what the local trainer sends beside
    them as ``payload/NAME``. Where updates are compressed, the weights are those that the server
    puts together from the compressed change, and what the client keeps of it for its next round
    stands as ``residual/NAME``. After a divergence that `on_divergence` drops, it holds nothing,
    and says so in its notes.

    Parameters
    ----------
    state : list of Path, optional
        The group's round state, or with shared control variates those of all groups.

    Raises
    ------
    FedstageError
        If training diverges and `on_divergence` is stop: names client, round and step.
    """
    settings = read_line(line, Line)
    work = participant(
        settings=settings,
        round=round,
        group=group,
        slot=slot,
        data=data,
        info=info,
        clients=clients,
        participation=participation,
        start=start,
        state=state,
        output=output,
    )
    finish(work, prepare(settings.numerics))


def participant(
    *,
    settings: Line,
    round: int,
    group: int,
    slot: int,
    data: Path,
    info: Path,
    clients: Path,
    participation: Path,
    start: Path,
    state: list[Path] | None = None,
    output: Path,
) -> Generator[None, None, None]:
    """Train a client and write its update, as the stage does with these options.

    Yields after each step of its training, so that other clients may take theirs: see
    `local_training`.
    """
    device = prepare(settings.numerics)
    client = _client_of(participation, round, slot)
    images, labels = read_labelled(data, read_samples(clients, "train", client), device)
    notes = read_info(info)
    loss = client_loss(settings.client.loss, int(notes["classes"]), device)
    model = new_model(model_of(settings, group), notes, device, settings.numerics)
    weights, _ = load_tensors(start)
    known = read_state(state or [], group)
    fill_model(model, weights | own_statistics(known, client), start)
    trainer = local_trainer(settings.local.name)
    anchors = {name: value.detach().clone() for name, value in model.named_parameters()}
    remembered = variates(known)
    on_device = {name: value.to(device) for name, value in remembered.items()}
    key = (settings.seed, "local_training", round, client)
    outcome = yield from training(
        model,
        images,
        labels,
        _batches(settings, round, client, len(images)),
        settings.client,
        loss,
        notes,
        torch_generator(*key, "augmentation"),
        settings.numerics,
        rate=settings.client.round_decay ** (round - 1),
        gradient_term=trainer.gradient_term(settings.local, anchors, on_device, client),
    )
    about = {"round": round, "group": group, "slot": slot, "client": client, "samples": len(images)}
    if outcome.diverged_at is not None:
        _refuse_divergence(settings, about, outcome)
        save_tensors(output, {}, about | {"diverged_at": outcome.diverged_at})
        return
    ended = state_of(model)

    def gradient_at_start() -> Weights:
        fill_model(model, weights, start)
        chosen, numerics = settings.client, settings.numerics
        gradient = full_gradient(model, images, labels, chosen, loss, notes, numerics)
        names = [name for name, _ in model.named_parameters()]
        return dict(zip(names, (value.cpu() for value in gradient), strict=True))

    trained = Trained(
        parameters_of(model, weights),
        parameters_of(model, ended),
        outcome,
        gradient_at_start,
        settings.client,
    )
    sent = trainer.payload(settings.local, trained, remembered, client)
    arrived, left = _sent(settings, trained, residual_of(known, client))
    save_tensors(output, _update(ended | arrived, sent, left), about | _progress(outcome))


def _batches(settings: Line, round: int, client: int, samples: int) -> list[torch.Tensor]:
    """Return a participant's batches; those that go on from round to round have one key for all."""
    chosen, key = settings.client, (settings.seed, "local_training")
    if chosen.batches == "anew":
        generator = torch_generator(*key, round, client, "batches")
        return client_batches(samples, chosen, generator)
    assert chosen.steps is not None, "checked by Client"
    generator = torch_generator(*key, client, "batches")
    return client_batches(samples, chosen, generator, skipped=(round - 1) * chosen.steps)


def _sent(settings: Line, trained: Trained, residual: Weights) -> tuple[Weights, Weights]:
    """Return the parameters that the server gets, and what compression leaves with the client."""
    if settings.compression.name == "none":
        return trained.end, {}
    return transmit(settings.compression, trained.start, trained.end, residual)


def _client_of(participation: Path, round: int, slot: int) -> int:
    rows = load_table(participation, ["round", "slot", "client"]).to_pylist()
    for row in rows:
        if row["round"] == round and row["slot"] == slot:
            return int(row["client"])
    raise FedstageError(f"{participation}: has no slot {slot} in round {round}")


def _refuse_divergence(settings: Line, about: dict[str, Any], outcome: Outcome) -> None:
    if settings.on_divergence == "stop":
        raise FedstageError(
            f"client {about['client']}, round {about['round']}: the loss is not finite at step "
            f"{outcome.diverged_at}; lower client.learning_rate = {settings.client.learning_rate}, "
            "or set client.clip_norm or on_divergence: drop"
        )


def _update(weights: Weights, sent: Weights, left: Weights) -> Weights:
    parts = {"model": weights, "payload": sent, "residual": left}
    return {f"{kind}/{name}": value for kind, part in parts.items() for name, value in part.items()}


def _progress(outcome: Outcome) -> dict[str, Any]:
    return {"steps": outcome.steps, "loss": outcome.loss}
