import os
import subprocess
import sys

import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Optimiser
from fedstage.training.devices import prepare
from fedstage.training.loop import train

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def leave_the_process_as_it_was(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is put back afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    threads = torch.get_num_threads()
    of_convolutions, of_products = torch.backends.cudnn, torch.backends.cuda.matmul
    tf32 = of_convolutions.allow_tf32, of_products.allow_tf32
    filled = torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.utils.deterministic.fill_uninitialized_memory = filled
    of_convolutions.allow_tf32, of_products.allow_tf32 = tf32
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode("default")


def found(monkeypatch, gpus):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)


def test_auto_takes_the_gpu_if_there_is_one(monkeypatch):
    found(monkeypatch, gpus=0)
    assert prepare(Numerics()).type == "cpu"
    found(monkeypatch, gpus=1)
    assert prepare(Numerics()).type == "cuda"


@pytest.mark.parametrize(
    ("device", "gpus"), [("cuda", 0), ("cuda:0", 0), ("cuda:1", 1), ("cuda:7", 2)]
)
def test_absent_gpu_is_named(monkeypatch, device, gpus):
    found(monkeypatch, gpus)
    message = f"numerics.device = '{device}': this machine has {gpus} usable GPUs; use auto or cpu"
    with pytest.raises(FedstageError, match=message):
        prepare(Numerics(device=device))


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_gpu_is_made_deterministic(monkeypatch, device):
    found(monkeypatch, gpus=2)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    assert prepare(Numerics(device=device)) == torch.device(device)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize(("precision", "taken"), [("fp32", False), ("bf16", False), ("tf32", True)])
def test_tf32_is_taken_where_it_is_asked_for_and_nowhere_else(monkeypatch, precision, taken):
    found(monkeypatch, gpus=1)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not taken
    prepare(Numerics(device="cuda", precision=precision))
    assert torch.backends.cudnn.allow_tf32 == taken
    assert torch.backends.cuda.matmul.allow_tf32 == taken


@pytest.mark.parametrize(
    ("amx", "avx512", "able"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_bf16_needs_a_cpu_that_has_it(monkeypatch, amx, avx512, able):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    found(monkeypatch, gpus=0)
    assert prepare(Numerics(precision="fp32")).type == "cpu"
    if able:
        assert prepare(Numerics(precision="bf16")).type == "cpu"
        return
    with pytest.raises(FedstageError) as refused:
        prepare(Numerics(precision="bf16"))
    assert str(refused.value) == (
        "numerics.precision = 'bf16': this CPU has neither AMX nor AVX512-BF16; use fp32"
    )


def test_training_imports_no_compiler():
    """It takes seconds, in every process of a run without warm workers."""
    code = (
        "import sys, torch, fedstage.stages.segment, fedstage.stages.local_models\n"
        "import fedstage.stages.local_training, fedstage.stages.aggregation\n"
        "import fedstage.stages.distillation\n"
        "from fedstage.settings.numerics import Numerics\n"
        "from fedstage.settings.optimisation import Optimiser\n"
        "from fedstage.training.loop import train\n"
        "from fedstage.randomness import torch_generator as generator\n"
        "model, loss = torch.nn.Linear(4, 2), torch.nn.functional.cross_entropy\n"
        "images = torch.zeros(4, 1, 1, 4, dtype=torch.uint8)\n"
        "model = torch.nn.Sequential(torch.nn.Flatten(), model)\n"
        "data = images, torch.zeros(4).long(), [torch.arange(4)]\n"
        "settings, info = Optimiser(learning_rate=1, batch_size=4), {'mean': [0.5], 'std': [1.0]}\n"
        "for precision in ('fp32', 'bf16'):\n"
        "    numerics = Numerics(precision=precision, memory_format='channels_last')\n"
        "    train(model, *data, settings, loss, info, generator(0), numerics)\n"
        "print(sorted({'torch._dynamo', 'torch._inductor', 'sympy'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@needs_gpu
def test_gpu_repeats_itself_bit_for_bit():
    device = prepare(Numerics(device="cuda"))
    weight = torch.linspace(-1, 1, 64 * 64, device=device).view(64, 64)
    first = (weight @ weight.T).softmax(1)
    assert torch.equal((weight @ weight.T).softmax(1), first)


@needs_gpu
def test_no_step_waits_for_the_gpu():
    numerics = Numerics(device="cuda", precision="bf16", memory_format="channels_last")
    device = prepare(numerics)
    chosen = {"learning_rate": 0.1, "momentum": 0.9, "clip_norm": 1.0, "batch_size": 8}
    settings = Optimiser.model_validate(chosen | {"augmentation": "crop_flip"})
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2)
    )
    model = model.to(device)
    images = torch.zeros(16, 3, 8, 8, dtype=torch.uint8, device=device)
    labels = torch.zeros(16, dtype=torch.int64, device=device)
    model(images.float())  # the lazy layer
    batches, generator = list(torch.arange(16).split(8)) * 3, torch_generator(0, "augmentation")

    def strict(parameters):
        torch.cuda.set_sync_debug_mode("error")  # from the first step on

    def relax(step):
        if step == len(batches):
            torch.cuda.set_sync_debug_mode("default")
        return False

    try:
        train(
            model, images, labels, batches, settings, torch.nn.functional.cross_entropy,
            {"mean": [0.5] * 3, "std": [0.5] * 3}, generator, numerics,
            gradient_term=strict, after_step=relax,
        )  # fmt: skip
    finally:
        torch.cuda.set_sync_debug_mode("default")
