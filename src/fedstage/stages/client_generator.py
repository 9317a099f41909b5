"""Stage `client_generator`: a client trains a generator of images like its own."""

from pathlib import Path

import torch

from fedstage.algorithm.one_shot.generators import of_clients
from fedstage.errors import fault_of
from fedstage.plan.inputs import ClientsInputs
from fedstage.settings.generators import OfClients
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages.inputs import begin, read_own
from fedstage.storage.tensors import save_tensors


def client_generator(
    recipe: OneShotRecipe, read: ClientsInputs[Path], *, client: int, output: Path
) -> None:
    """Train the generator on the client's training samples; write the part that is sent.

    This is its `decoder.*` and the client's `label_counts`, int32 [classes].

    Raises
    ------
    FedstageError
        If training diverges; the message names the client and the step.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.generator, OfClients), "checked by the catalogue: clients train it"
    images, labels = read_own(read.data, read.clients, client, device, info)
    assert isinstance(images, torch.Tensor), "checked by OneShotRecipe: samples are images"
    key = (recipe.seed, "client_generator", client)
    module = of_clients(recipe.generator)
    with fault_of(f"client {client}"):
        weights, loss = module.train(recipe.generator, images, labels, info, key, recipe.numerics)
    counts = torch.bincount(labels.cpu(), minlength=int(info["classes"]))
    tensors = {f"decoder.{name}": value for name, value in weights.items()}
    tensors["label_counts"] = counts.to(torch.int32)
    save_tensors(output, tensors, {"client": client, "samples": len(images), "loss": loss})
