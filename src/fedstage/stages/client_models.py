"""Stages of clients' fully trained models: in 8 bits, and their logits."""

from pathlib import Path

import torch

from fedstage.algorithm.one_shot.client_models import compute_client_logits, example, library
from fedstage.data.samples import read_images, read_samples
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import ClientLogitsInputs, QuantisedModelInputs
from fedstage.protocol.digests import canonical
from fedstage.protocol.one_shot import client_model
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, read_unlabelled
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import normalised_batches

#: Number of a client's training samples that give ranges of activations, or all if it has fewer.
CALIBRATED_ON = 256


def quantised_model(recipe: LocalRecipe, read: QuantisedModelInputs[Path], *, output: Path) -> None:
    """Quantise the model after its training, with ranges of activations from training samples.

    The file has the tensors that a server sends on.
    """
    device, info = begin(recipe, read.info)
    weights, metadata = load_tensors(read.model)
    client = metadata["client"]
    network = new_model(client_model(recipe, client), info, device)
    fill_model(network, weights, read.model)
    own = read_samples(read.clients, "train", client)
    generator = torch_generator(recipe.seed, "quantised_model", client)
    order = torch.randperm(len(own), generator=generator)
    chosen = own[order[:CALIBRATED_ON]]
    images, _ = read_images(read.data, chosen, device)
    batches = normalised_batches(images, info)
    tensors = library().quantise(network, example(images), batches)
    described = {
        "client": client,
        "samples": metadata["samples"],
        "calibrated_on": len(chosen),
        "ranges": library().ranges(tensors),
        "quantisation": canonical(recipe.quantisation),
    }
    save_tensors(output, tensors, described)


def client_logits(
    recipe: LocalRecipe,
    read: ClientLogitsInputs[Path],
    *,
    images: str,
    output: Path,
) -> None:
    """Compute logits [n, classes] once; every aggregator, teacher and evaluation reads them.

    Parameters
    ----------
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    output : Path
        Its metadata hold the client and the number of its training samples.
    """
    device, info = begin(recipe, read.info)
    samples = read_unlabelled(read.data, read.clients, images, info, device)
    logits, metadata = compute_client_logits(recipe, read.model, samples, info)
    save_tensors(output, {"logits": logits}, {key: metadata[key] for key in ("client", "samples")})
