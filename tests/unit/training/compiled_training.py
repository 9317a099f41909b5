"""Compiled trainings in a process of their own; prints what came of them as JSON."""

import hashlib
import json
import sys
from functools import partial
from unittest import mock

import torch
from torch import nn

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, LogisticRegression
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Focal, Optimiser
from fedstage.settings.server import Server
from fedstage.training.devices import prepare
from fedstage.training.loop import train
from fedstage.training.losses import client_loss
from fedstage.training.passes import arrange

INFO = {"mean": [0.4], "std": [0.3]}
MODELS = {
    "cnn": CnnSmall(name="cnn_small", width=4, hidden=8, norm="batch"),
    "linear": LogisticRegression(name="logistic_regression"),
}
SETTINGS = Optimiser(learning_rate=0.1, batch_size=8, momentum=0.9)


def data():
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (20, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, 3, (20,), generator=generator)


def model(of):
    made = build(MODELS[of], (1, 8, 8), 3)
    initialise(made, torch_generator(0, "weights"))
    return made


def focal_loss():
    """Return a client's loss as each training asks for it."""
    settings = Focal(name="focal", class_weights=(0.5, 1.0, 4.0))
    return client_loss(settings, 3, torch.device("cpu"))


def trained(numerics, loss=None, batches=None, of="cnn"):
    """Return the trained weights, and how many graphs were made."""
    from torch._dynamo.utils import counters

    images, targets = data()
    if loss is None:
        loss = nn.functional.cross_entropy
    elif loss is not focal_loss():
        targets = torch.randn(20, 3, generator=torch_generator(0, "teacher"))
    torch.set_num_threads(numerics.threads)
    made = arrange(model(of), numerics)
    batches = list(torch.arange(20).split(8)) * 2 if batches is None else batches
    before = counters["stats"]["unique_graphs"]
    generator = torch_generator(0, "augmentation")
    train(made, images, targets, batches, SETTINGS, loss, INFO, generator, numerics)
    weights = torch.cat([value.detach().flatten() for value in made.parameters()])
    return weights, counters["stats"]["unique_graphs"] - before


def compared(choice, loss=None, of="cnn"):
    compiled, graphs = trained(Numerics.model_validate(choice | {"compile": True}), loss, of=of)
    eager, _ = trained(Numerics.model_validate(choice), loss, of=of)
    distance = float((compiled - eager).norm() / eager.norm())
    digest = hashlib.sha256(compiled.numpy().tobytes()).hexdigest()
    return {"digest": digest, "graphs": graphs, "distance": distance}


def smaller(choice):
    batches = [torch.arange(5)]
    compiled, graphs = trained(Numerics.model_validate(choice | {"compile": True}), None, batches)
    eager, _ = trained(Numerics.model_validate(choice), None, batches)
    return {"graphs": graphs, "equal": torch.equal(compiled, eager)}


def report(precision):
    choice = {"precision": precision, "memory_format": "channels_last"}
    return {"first": compared(choice), "again": compared(choice), "smaller": smaller(choice)}


def taught(temperature):
    settings = {"learning_rate": 0.1, "batch_size": 8, "steps": 2}
    loss = distillation_loss(Server(**settings, temperature=temperature))
    return compared({}, loss, "linear")


def report_changes():
    """Other threads, and so many losses that the compiler would usually give up.

    Of most losses only the graph is made: whether the compiler gives up is decided there.
    """
    compiled = {
        "linear": compared({}, of="linear"),
        "two_threads": compared({"threads": 2}, of="linear"),
        "focal": compared({}, focal_loss(), "linear"),
        "temperature 2.0": taught(2.0),
    }
    with mock.patch("torch.compile", partial(torch.compile, backend="eager")):
        graphs = {f"temperature {tau}": taught(tau) for tau in (3.0, 4.0, 6.0, 9.0, 12.0)}
    return compiled | graphs


def main(precisions):
    prepare(Numerics(device="cpu"))
    reports = {"changes": report_changes()} | {name: report(name) for name in precisions}
    from torch._dynamo.utils import counters

    inductor = counters["inductor"]
    loaded = inductor["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    missed = inductor["fxgraph_cache_miss"] + counters["aot_autograd"]["autograd_cache_miss"]
    print(json.dumps(reports | {"loaded": loaded, "compiled": missed}))


if __name__ == "__main__":
    main(sys.argv[1:])
