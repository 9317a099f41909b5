"""Stages of secure aggregation: its four steps in a round, and what clients keep.

In step 0 (`advertise`) participants draw keys, in step 1 (`share`) they share their secrets, in
step 2 (`masked_input`) they send their changes under masks, and in step 3 (`unmask`) they reveal
the shares by which the masks of the sum are removed.
"""

from pathlib import Path

import torch

from fedstage.algorithm.exchange.round_state import of_clients
from fedstage.algorithm.exchange.updates import Update, read_updates
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer
from fedstage.algorithm.secure.masks import masked, public_key
from fedstage.algorithm.secure.messages import Message, answered, as_rows, as_tensors, read_messages
from fedstage.algorithm.secure.shares import MESSAGE_BYTES, SHARE_BYTES
from fedstage.algorithm.secure.steps import (
    Participant,
    Secrets,
    check_answers,
    opened_shares,
    place_of,
    reveal,
    sealed_shares,
    still_there,
)
from fedstage.algorithm.secure.vectors import Integers, check_samples, encode
from fedstage.data.participation import client_of
from fedstage.data.samples import read_info
from fedstage.errors import FedstageError
from fedstage.models.loading import parameter_names
from fedstage.plan.inputs import (
    AdvertiseInputs,
    ClientStateInputs,
    MaskedInputInputs,
    ShareInputs,
    UnmaskInputs,
)
from fedstage.protocol.digests import own_key
from fedstage.protocol.exchange import secure_of
from fedstage.protocol.groups import model_of
from fedstage.randomness import numpy_generator, secret
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.storage.tensors import open_tensors, save_tensors


def advertise(
    recipe: Recipe,
    read: AdvertiseInputs[Path],
    made: Made,
    *,
    round_: int,
    group: int,
    participant: int,
) -> None:
    """Draw a participant's two key pairs and b_u, the seed of its self mask.

    They follow from the seed of the run, because a simulation must be reproducible byte for byte;
    anyone with the seed can unmask everything. Outside a simulation they come from the client's
    system.
    """
    client, base = client_of(read.participation, round_, participant)
    place = {"round": round_, "group": group, "participant": participant, "client": client}
    metadata = place | {"base_round": base}
    own, sent = dict[str, bytes](), dict[str, bytes]()
    if client is not None:
        key = (recipe.seed, own_key(recipe), "advertise", round_, client)
        own = {name: secret(*key, name) for name in Secrets._fields}
        sent = {name: public_key(own[name]) for name in ("channel", "mask")}
    save_tensors(made["private"], as_tensors(own), metadata)
    save_tensors(made["public"], as_tensors(sent), metadata)


def share(recipe: Recipe, read: ShareInputs[Path], *, shares: Path) -> None:
    """Encrypt shares of b_u and of the private mask key, one of each for every participant.

    A participant keeps its own two shares in the same way, encrypted for itself.
    """
    own, public = read_messages([read.private])[0], answered(read_messages(read.public_keys))
    threshold = secure_of(recipe).threshold
    if not (own.tensors and still_there(recipe, own.metadata, "share")):
        save_tensors(shares, {}, own.metadata)
        return
    round_, group, client = (own.metadata[key] for key in ("round", "group", "client"))
    check_answers("advertise", place_of(own.metadata), len(public), threshold)
    secrets = Secrets(*(own.text(name) for name in Secrets._fields))
    channels = {receiver: message.text("channel") for receiver, message in public.items()}
    key = (recipe.seed, own_key(recipe), "share", round_, client)
    keys = [secret(*key, name) for name in ("seed", "mask")]
    who = Participant(round_, group, own.participant)
    sealed = sealed_shares(who, secrets, channels, threshold, (keys[0], keys[1]))
    tensors = {"messages": as_rows(sealed.values(), MESSAGE_BYTES)}
    save_tensors(shares, tensors, own.metadata | {"receivers": list(sealed)})


def masked_input(recipe: Recipe, read: MaskedInputInputs[Path], made: Made) -> None:
    """Write the masked vector of a participant's update, and a receipt for it.

    A participant whose training diverged sends nothing, as if it had dropped out.
    """
    own, shared = read_messages([read.private])[0], answered(read_messages(read.shares))
    updates = [update for update in read_updates([read.own_update]) if not update.diverged]
    there = own.participant in shared and still_there(recipe, own.metadata, "masked_input")
    if not (there and updates):
        save_tensors(made["vector"], {}, own.metadata)
        save_tensors(made["receipt"], {}, own.metadata)
        return
    check_answers("share", place_of(own.metadata), len(shared), secure_of(recipe).threshold)
    values = _values(recipe, read, updates[0], own)
    keys = answered(read_messages(read.public_keys))
    public = {other: keys[other].text("mask") for other in shared}
    sent = masked(values, own.participant, own.text("seed"), own.text("mask"), public)
    save_tensors(made["vector"], {"vector": torch.from_numpy(sent)}, own.metadata)
    save_tensors(made["receipt"], {"arrived": torch.ones(1, dtype=torch.uint8)}, own.metadata)


def _values(
    recipe: Recipe, read: MaskedInputInputs[Path], update: Update, own: Message
) -> Integers:
    """Return the integers to which the masks are added."""
    secure, place = secure_of(recipe), update.metadata
    samples, start = place["samples"], open_tensors(read.start)[0]
    check_samples(secure, samples, place["client"])
    names = parameter_names(model_of(recipe, place["group"]), read_info(read.info))
    change = {name: update.weights[name].double() - start[name].double() for name in names}
    summed = local_trainer(recipe.local).summed({name: start[name] for name in names})
    if other := update.payload.keys() ^ summed.keys():
        raise FedstageError(
            f"local = {recipe.local.name}: payload and summed differ in {min(other)!r}: must have "
            "the same tensors with aggregation.secure, by which the server gets their sums alone"
        )
    key = (recipe.seed, "masked_input", place["round"], place["client"], "rounding")
    weighting = recipe.aggregation.weights
    return encode(secure, weighting, change, update.payload, samples, numpy_generator(*key))


def unmask(recipe: Recipe, read: UnmaskInputs[Path], *, revealed: Path) -> None:
    """Decrypt the shares that a participant received, and reveal one of each other one's two.

    For a participant whose masked vector arrived, it is the share of b_v; for one that dropped out
    after sending shares, it is the share of its mask key.
    """
    own, arrived = read_messages([read.private])[0], answered(read_messages(read.receipts))
    me = own.participant
    if not (me in arrived and still_there(recipe, own.metadata, "unmask")):
        save_tensors(revealed, {}, own.metadata)
        return
    check_answers("masked input", place_of(own.metadata), len(arrived), secure_of(recipe).threshold)
    public = answered(read_messages(read.public_keys))
    channels = {sender: message.text("channel") for sender, message in public.items()}
    sealed = {
        sender: message.texts("messages", of="receivers")[me]
        for sender, message in answered(read_messages(read.shares)).items()
    }
    who = Participant(own.metadata["round"], own.metadata["group"], me)
    found = reveal(opened_shares(who, own.text("channel"), channels, sealed), arrived)
    tensors = {name: as_rows(texts.values(), SHARE_BYTES) for name, texts in found.named.items()}
    of = {f"{name}_of": list(texts) for name, texts in found.named.items()}
    save_tensors(revealed, tensors, own.metadata | of)


def client_state(recipe: Recipe, read: ClientStateInputs[Path], *, output: Path) -> None:
    """Write the states of all clients of a group after a round, named client/ID/NAME.

    A participant whose masked vector has not arrived is not in the sums, so it keeps its previous
    state, and the server's control variate stays the mean of the clients'.

    Raises
    ------
    FedstageError
        If the server's part of the state cannot be computed from sums.
    """
    receipts = read_messages(read.receipts)
    arrived = answered(receipts)
    updates = [
        update
        for update in read_updates(read.own_updates)
        if update.metadata["participant"] in arrived
    ]
    before = open_tensors(read.state)[0] if read.state else {}
    trainer = local_trainer(recipe.local)
    after = trainer.next_state(before, updates, recipe.clients)
    own = of_clients(after)
    lost = after.keys() - own.keys()
    if lost and type(trainer).server_state is LocalTrainer.server_state:
        raise FedstageError(
            f"local = {recipe.local.name}: next_state returns {min(lost)!r}: must be returned by "
            "server_state, too, with aggregation.secure, by which the server gets sums alone"
        )
    save_tensors(output, own, {key: receipts[0].metadata[key] for key in ("round", "group")})
