"""Stage `synthesised`: the server generates images against an ensemble, and teaches a student."""

from pathlib import Path

import torch

from fedstage.algorithm.one_shot.generators import of_server
from fedstage.algorithm.one_shot.generators.adversarial import synthesise
from fedstage.algorithm.one_shot.generators.world import World
from fedstage.data.label_counts import count_generated
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.models.loading import state_of
from fedstage.plan.inputs import SynthesisedInputs
from fedstage.protocol.one_shot import client_model, members
from fedstage.protocol.teaching import server_of
from fedstage.settings.generators import Adversarial
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import save_tensors
from fedstage.training.image_grid import save_grid

_ROWS = 10  # of the picture


def synthesised(recipe: OneShotRecipe, read: SynthesisedInputs[Path], made: Made) -> None:
    """Run DENSE or Co-Boosting.

    Parameters
    ----------
    output : Path
        `images` and `labels` of all epochs, as a data set's samples.
    histogram, picture : Path
        Output: the images of each class, of "client" -1; the first of each class in the first
        epochs, one row per epoch.
    student, weights : Path
        Output: the student trained along with them, and the weights [members] of the ensemble.
    """
    device, info = begin(recipe, read.info)
    generator = recipe.generator
    assert isinstance(generator, Adversarial), "checked by the catalogue: the server trains it"
    clients = members(recipe)
    teachers = [
        load_model(path, client_model(recipe, client), info, device, recipe.numerics)
        for client, path in zip(clients, read.models, strict=True)
    ]
    learner = load_model(read.start, recipe.student, info, device, recipe.numerics)
    found = synthesise(
        generator,
        of_server(generator, info),
        World(teachers, learner, info, recipe.numerics),
        server_of(recipe),
        (recipe.seed, "synthesised"),
    )
    images, labels = found.images.pixels.cpu(), found.images.labels.cpu()
    save_tensors(made["output"], {"images": images, "labels": labels})
    nobody = [-1] * len(labels)
    save_rows(made["histogram"], count_generated(nobody, labels.tolist()), HISTOGRAM_SCHEMA)
    epochs = torch.arange(len(labels)) // generator.batch_size
    first = epochs < _ROWS
    names = info["class_names"]
    save_grid(made["picture"], images[first], epochs[first] + 1, labels[first], names, "epoch")
    save_tensors(made["student"], state_of(learner), {"members": clients, "loss": found.loss})
    save_tensors(made["weights"], {"weights": found.weights}, {"members": clients})
