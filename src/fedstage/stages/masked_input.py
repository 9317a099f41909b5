"""Stage `masked_input`: step 2 of secure aggregation, a participant's change under masks."""

from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update, read_updates
from fedstage.algorithm.local_trainers import local_trainer
from fedstage.algorithm.secure.masks import masked
from fedstage.algorithm.secure.messages import Message, answered, read_messages
from fedstage.algorithm.secure.steps import still_there
from fedstage.algorithm.secure.unmasking import check_answers, place_of
from fedstage.algorithm.secure.vectors import Integers, check_samples, encode
from fedstage.data.samples import read_info
from fedstage.errors import FedstageError
from fedstage.models.loading import parameter_names
from fedstage.plan.inputs import MaskedInputInputs
from fedstage.randomness import numpy_generator
from fedstage.settings.exchange import secure_of
from fedstage.settings.groups import model_of
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.storage.tensors import open_tensors, save_tensors


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
