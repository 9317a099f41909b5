"""Graphs and streams on a GPU; test_graphs and test_streams need none."""

import pytest
import torch

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNet
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client, CrossEntropy, Optimiser
from fedstage.training.batches import client_batches, take_turns
from fedstage.training.devices import prepare
from fedstage.training.loop import training
from fedstage.training.losses import client_loss
from fedstage.training.passes import arrange

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

INFO = {"mean": [0.5] * 3, "std": [0.5] * 3}
SGD = {"momentum": 0.9, "weight_decay": 1e-3, "clip_norm": 1.0, "augmentation": "crop_flip"}
PLAIN = CrossEntropy(name="cross_entropy")
FORMATS = {
    "fp32": {},
    "tf32": {"precision": "tf32"},
    "bf16": {"precision": "bf16", "memory_format": "channels_last"},
}


@pytest.fixture(autouse=True)
def leave_the_process_as_it_was(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is put back afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    of_convolutions, of_products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = torch.get_num_threads(), of_convolutions.allow_tf32, of_products.allow_tf32
    yield
    torch.set_num_threads(before[0])
    of_convolutions.allow_tf32, of_products.allow_tf32 = before[1:]
    torch.set_deterministic_debug_mode("default")
    torch.utils.deterministic.fill_uninitialized_memory = True


def states(change, at_a_time, loss=PLAIN, **numerics):
    """Train three clients of different sizes; return their weights and outcomes."""
    chosen = Numerics.model_validate({"device": "cuda"} | numerics)
    device, done = prepare(chosen), {}

    def one(number):
        generator, samples = torch_generator(number, "data"), 60 + 40 * number
        shape = (samples, 3, 16, 16)
        images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        labels = torch.randint(0, 3, (samples,), generator=generator)
        model = build(ResNet(name="resnet8"), (3, 16, 16), 3)
        initialise(model, torch_generator(0, "weights"))
        model = arrange(model.to(device), chosen)
        client = Client(epochs=5, batch_size=16, learning_rate=0.05)
        batches = client_batches(samples, client, generator)
        settings = Optimiser.model_validate({"learning_rate": 0.05, "batch_size": 16} | change)
        outcome = yield from training(
            model, images.to(device), labels.to(device), batches, settings,
            client_loss(loss, 3, device), INFO, torch_generator(number, "draws"), chosen,
        )  # fmt: skip
        state = {name: value.cpu() for name, value in model.state_dict().items()}
        done[number] = outcome, state

    take_turns(map(one, range(3)), at_a_time, device)
    return done


def assert_same(first, second):
    for number, (outcome, state) in first.items():
        other, others = second[number]
        assert outcome == other
        assert all(torch.equal(state[name], others[name]) for name in state)


@pytest.mark.parametrize("change", [SGD, {"optimiser": "adam"}], ids=["sgd", "adam"])
@pytest.mark.parametrize("numerics", FORMATS.values(), ids=FORMATS)
def test_a_graph_gives_the_bytes_of_its_step(change, numerics):
    plain = states(change, 1, **numerics)
    assert_same(plain, states(change, 1, cuda_graphs=True, **numerics))


@pytest.mark.parametrize("graphs", [False, True], ids=["steps", "graphs"])
@pytest.mark.parametrize("at_a_time", [2, 3])
def test_how_many_train_at_a_time_changes_no_byte(at_a_time, graphs):
    alone = states(SGD, 1, cuda_graphs=graphs, **FORMATS["bf16"])
    for _ in range(3):
        assert_same(alone, states(SGD, at_a_time, cuda_graphs=graphs, **FORMATS["bf16"]))
