"""Steps as CUDA graphs, on a CPU: a graph is played by the operations that a step called once.

What a graph holds fixed is fixed here, too: the tensors, and every number that the host computed.
"""

import random

import numpy as np
import pytest
import torch
from tests.shared.settings import federated
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer, participant
from fedstage.algorithm.local_trainers.participant import Participant, Start, train_participant
from fedstage.errors import FedstageError
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.local_training import FedProx, Scaffold
from fedstage.settings.models import CnnSmall, ResNet
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Focal, Optimiser
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import Server
from fedstage.training import loop
from fedstage.training.loop import train
from fedstage.training.losses import client_loss
from fedstage.training.passes import arrange

INFO = {"mean": [0.4] * 3, "std": [0.3] * 3}
CLASSES, SIZE, SAMPLES = 3, 6, 27  # of an epoch's batches the last has three samples
WITH_GRAPHS = Numerics(device="cuda", cuda_graphs=True)

#: What a host has to wait for a device to tell.
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal", "is_nonzero"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


class Asked(TorchDispatchMode):
    """Fails where the host asks for a number of the device."""

    def __torch_dispatch__(self, called, types, arguments=(), named=None):
        name = called.overloadpacket.__name__
        assert name not in WAITS, f"the host waits for {name}"
        return called(*arguments, **(named or {}))


class Calls(Asked):
    """The operations that were called, on which tensors, and what they gave."""

    def __init__(self):
        super().__init__()
        self.made, self.own, self.found = [], set(), {}

    def __torch_dispatch__(self, called, types, arguments=(), named=None):
        for tensor in tensors_in([arguments, named]):
            if id(tensor) not in self.own | self.found.keys():
                self.found[id(tensor)] = tensor, tensor.detach().clone()
        result = super().__torch_dispatch__(called, types, arguments, named)
        self.own |= {id(tensor) for tensor in tensors_in(result)} - self.found.keys()
        self.made.append((called, arguments, named or {}, result))
        return result

    @torch.no_grad()
    def undo(self):
        """Put back what was there before the first call: to record a step is not to take it."""
        for tensor, value in self.found.values():
            tensor.copy_(value)

    @torch.no_grad()
    def repeat(self):
        """Call all of them again, on the same tensors, and write the results where they were."""
        for called, arguments, named, result in self.made:
            aliases = [part.alias_info for part in called._schema.returns]
            if any(alias is not None and not alias.is_write for alias in aliases):
                continue  # a view stays one of the same memory
            again = called(*arguments, **named)
            if not any(aliases):
                for before, after in zip(tensors_in(result), tensors_in(again), strict=True):
                    before.copy_(after)


def tensors_in(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Player:
    """Stands for `loop.record`: counts what was recorded and how often it was taken."""

    def __init__(self):
        self.recorded, self.taken = 0, 0

    def __call__(self, step):
        self.recorded += 1
        with Calls() as calls:
            loss = step()
        calls.undo()

        def replay():
            self.taken += 1
            calls.repeat()
            return loss

        return replay


@pytest.fixture
def player(monkeypatch):
    monkeypatch.setattr(loop, "record", made := Player())
    return made


def network(name="cnn", numerics=WITH_GRAPHS):
    small = CnnSmall(name="cnn_small", width=4, hidden=8, norm="batch")
    made = build(small if name == "cnn" else ResNet(name="resnet8"), (3, 8, 8), CLASSES)
    initialise(made, torch_generator(0, "weights"))
    return arrange(made, numerics)


def data():
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (SAMPLES, 3, 8, 8), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, CLASSES, (SAMPLES,), generator=generator)


def batches(epochs=3, size=SIZE):
    generator = torch_generator(0, "batches")
    drawn = (torch.randperm(SAMPLES, generator=generator) for _ in range(epochs))
    return [batch for epoch in drawn for batch in epoch.split(size)]


def settings(**changes):
    basic = {"learning_rate": 0.1, "batch_size": SIZE, "schedule": "cosine"}
    return Optimiser.model_validate(basic | changes)


def trained(model, chosen, numerics, indices=None, *, loss=nn.functional.cross_entropy, **options):
    images, labels = data()
    generator = torch_generator(0, "augmentation")
    indices = batches() if indices is None else indices
    outcome = train(
        model, images, labels, indices, chosen, loss, INFO, generator, numerics, **options
    )
    return outcome, {name: value.clone() for name, value in model.state_dict().items()}


def terms(model, name):
    """Return the gradient term of a local trainer in the middle of its rounds."""
    generator = torch_generator(0, "variates")
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    state = {
        f"{whose}/{name}": torch.randn(value.shape, generator=generator) * 0.01
        for whose in ("server", "client/0")
        for name, value in start.items()
    }
    chosen = {"fedprox": FedProx(name="fedprox", mu=0.3), "scaffold": Scaffold(name="scaffold")}
    return local_trainer(chosen[name]).gradient_term(start, state, 0)


def same(first, second):
    (outcome, state), (other, others) = first, second
    return outcome == other and all(torch.equal(state[name], others[name]) for name in state)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3, "clip_norm": 0.5},
        {"optimiser": "adam", "learning_rate": 0.01},
        {"optimiser": "adam", "weight_decay": 0.01, "augmentation": "flip"},
        {"momentum": 0.9, "augmentation": "crop_flip"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["cnn", "resnet"])
def test_a_recorded_step_gives_the_bytes_of_the_step(player, change, name):
    by_graph = trained(network(name), settings(**change), WITH_GRAPHS, rate=0.9)
    assert (player.recorded, player.taken) == (1, 12 - loop.WARM_UP)
    assert same(by_graph, trained(network(name), settings(**change), Numerics(), rate=0.9))


@pytest.mark.parametrize(
    "draw",
    [random.random, np.random.rand, lambda: torch.rand(1)],
    ids=["random", "numpy", "torch"],
)
def test_a_step_that_draws_is_not_recorded(player, draw):
    """A graph would hold its first numbers; those of NumPy and Python are not even operations."""

    def noisy(logits, labels):
        return nn.functional.cross_entropy(logits, labels) * draw()

    with pytest.raises(FedstageError, match="cuda_graphs = true: the model or its loss draws"):
        trained(network(), settings(), WITH_GRAPHS, loss=noisy)
    assert not player.recorded


class Drawing(LocalTrainer):
    def objective(self, task):
        return lambda model, x, y: task.loss(model(x), y) * torch.rand(1, generator=task.generator)


def test_a_trainer_that_draws_from_its_own_generator_is_not_recorded(player, monkeypatch):
    monkeypatch.setattr(participant, "local_trainer", Drawing)
    small = {"cnn_small": {"width": 4, "hidden": 8, "norm": "batch"}}
    recipe = Recipe.model_validate(federated(model=small))
    recipe = recipe.model_copy(update={"numerics": WITH_GRAPHS})
    info = INFO | {"classes": CLASSES, "shape": (3, 8, 8)}
    start = Start("start", dict(network().state_dict()), {})
    work = train_participant(recipe, Participant(1, 0, 0, 0, *data(), 0), start, info)
    with pytest.raises(FedstageError, match="cuda_graphs = true: the model or its loss draws"):
        list(work)
    assert not player.recorded


def focal_loss():
    settings = Focal(name="focal", class_weights=tuple(range(1, CLASSES + 1)))
    return client_loss(settings, CLASSES, torch.device("cpu"))


@pytest.mark.parametrize("name", ["fedprox", "scaffold"])
def test_the_terms_of_local_trainers_are_part_of_a_recorded_step(player, name):
    model, other = network(), network()
    by_graph = trained(model, settings(), WITH_GRAPHS, gradient_term=terms(model, name))
    assert player.taken
    assert same(by_graph, trained(other, settings(), Numerics(), gradient_term=terms(other, name)))
    assert not same(by_graph, trained(network(), settings(), Numerics()))


def test_students_learn_from_logits_in_recorded_steps(player):
    images, _ = data()
    teacher = torch.randn(SAMPLES, CLASSES, generator=torch_generator(0, "teacher"))
    server = Server(learning_rate=0.1, batch_size=SIZE, steps=12, momentum=0.9)
    states = []
    for numerics in (WITH_GRAPHS, Numerics()):
        model, loss = network(), distillation_loss(server)
        generator = torch_generator(0, "augmentation")
        train(model, images, teacher, batches(), server, loss, INFO, generator, numerics)
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_what_watches_the_steps_sees_the_weights_of_each(player):
    seen = {}
    for numerics in (WITH_GRAPHS, Numerics()):
        model = network()
        told = seen[numerics] = []

        def after_step(step, model=model, told=told):
            told.append((step, model.linear2.weight.detach().clone()))
            return step == 9

        trained(model, settings(), numerics, after_step=after_step)
    for (step, weight), (other, others) in zip(*seen.values(), strict=True):
        assert step == other
        assert torch.equal(weight, others)
    assert len(told) == 9


def test_a_size_that_hardly_comes_up_is_not_recorded(player):
    short = batches(size=SAMPLES)
    assert len(short) == loop.WARM_UP
    by_graph = trained(network(), settings(), WITH_GRAPHS, short)
    assert (player.recorded, player.taken) == (0, 0)
    assert same(by_graph, trained(network(), settings(), Numerics(), short))


@pytest.mark.parametrize(
    "loss", [nn.functional.cross_entropy, focal_loss()], ids=["plain", "focal"]
)
@pytest.mark.parametrize(
    "change",
    [
        {"momentum": 0.9, "clip_norm": 1.0, "augmentation": "crop_flip"},
        {"optimiser": "adam", "weight_decay": 0.01, "augmentation": "flip"},
    ],
    ids=str,
)
def test_the_host_asks_for_no_number_within_the_steps(change, loss):
    """Counted from the first step to the last; divergence is looked for after it."""
    indices = batches(epochs=1)
    watch = Asked()

    def begin(parameters):
        if watch not in watching:
            watching.append(watch)
            watch.__enter__()

    def end(step):
        if step == len(indices):
            watching.pop().__exit__(None, None, None)
        return False

    watching = []
    try:
        outcome, _ = trained(
            network(), settings(**change), Numerics(), indices, loss=loss, gradient_term=begin,
            after_step=end,
        )  # fmt: skip
    finally:
        while watching:
            watching.pop().__exit__(None, None, None)
    assert outcome.steps == len(indices)
