import os

import pytest
import torch

from fedstage.config import Numerics
from fedstage.engine.devices import prepare
from fedstage.errors import FedstageError

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def leave_the_process_as_it_was(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is put back afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode("default")


def found(monkeypatch, gpus):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)


def test_cpu_is_cpu_even_beside_a_gpu(monkeypatch):
    found(monkeypatch, gpus=1)
    assert prepare(Numerics(device="cpu")) == torch.device("cpu")
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_set(threads):
    prepare(Numerics(device="cpu", threads=threads))
    assert torch.get_num_threads() == threads
    assert torch.get_num_interop_threads() == 1


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


def test_gpus_that_cannot_be_used_do_not_count(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert prepare(Numerics()).type == "cpu"
    with pytest.raises(FedstageError, match="has 0 usable GPUs"):
        prepare(Numerics(device="cuda"))


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_gpu_is_made_deterministic(monkeypatch, device):
    found(monkeypatch, gpus=2)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    assert prepare(Numerics(device=device)) == torch.device(device)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_workspace_that_the_user_chose_is_kept(monkeypatch):
    found(monkeypatch, gpus=1)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    prepare(Numerics(device="cuda"))
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


@needs_gpu
def test_gpu_repeats_itself_bit_for_bit():
    device = prepare(Numerics(device="cuda"))
    weight = torch.linspace(-1, 1, 64 * 64, device=device).view(64, 64)
    first = (weight @ weight.T).softmax(1)
    assert torch.equal((weight @ weight.T).softmax(1), first)
