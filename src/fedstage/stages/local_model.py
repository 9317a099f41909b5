"""Stage `local_model`: full training on a client's data, all data pooled, or the server's core."""

from pathlib import Path

from fedstage.algorithm.one_shot import prototype_learning, unknown_class
from fedstage.data.samples import read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.loading import state_of
from fedstage.plan.inputs import LocalModelInputs
from fedstage.protocol.digests import own_key
from fedstage.protocol.one_shot import client_model, client_of
from fedstage.protocol.privacy import example_privacy
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import save_tensors
from fedstage.training.batches import client_batches, noisy_batches
from fedstage.training.images import unit_of
from fedstage.training.loop import train
from fedstage.training.losses import client_loss


def local_model(
    recipe: LocalRecipe, read: LocalModelInputs[Path], *, who: str, output: Path
) -> None:
    """Train a model on the training samples of one client, of all clients, or of the server.

    Parameters
    ----------
    who : str
        ``client_3``, ``pooled`` or ``core``.

    Raises
    ------
    FedstageError
        If training diverges; the message names the client and the step.
    """
    device, info = begin(recipe, read.info)
    client = client_of(who)
    samples = None if read.clients is None else read_samples(read.clients, "train", client)
    images, labels = read_labelled(read.data, samples, device, info)
    architecture = recipe.model if client is None else client_model(recipe, client)
    model = load_model(read.start, architecture, info, device, recipe.numerics)
    name: str | int = who if client is None else client
    key = (recipe.seed, "local_model", name)
    loss = client_loss(recipe.client.loss, int(info["classes"]), device)
    objective = None
    if recipe.prototypes is not None:
        generator = torch_generator(*key, "views")
        objective = prototype_learning.objective(
            recipe.prototypes, info, recipe.numerics, generator
        )
    if recipe.unknown is not None:
        generator, unit = torch_generator(*key, "outliers"), unit_of(images, info)
        means = unknown_class.Means(loss, recipe.numerics, generator, unit)
        objective = unknown_class.objective(recipe.unknown, means)
    how, noisy = example_privacy(recipe), None
    drawn = torch_generator(*key, "batches")
    batches = client_batches(len(images), recipe.client, drawn, private=how is not None)
    if how is not None:
        noise = torch_generator(recipe.seed, own_key(recipe), "local_model", name, "noise")
        noisy = noisy_batches(how, recipe.client.batch_size, len(images), noise)
    outcome = train(
        model,
        images,
        labels,
        batches,
        recipe.client,
        loss,
        info,
        torch_generator(*key, "augmentation"),
        recipe.numerics,
        objective=objective,
        noisy=noisy,
        whose=(whose := f"local model, {who.replace('_', ' ')}: "),
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{whose}the loss is not finite at step {outcome.diverged_at}; "
            f"lower client.learning_rate = {recipe.client.learning_rate} or set client.clip_norm"
        )
    metadata = {
        "client": name,
        "samples": len(images),
        "steps": outcome.steps,
        "loss": outcome.loss,
    }
    save_tensors(output, state_of(model), metadata)
