"""Memory that runs out, told in one line."""

import re

import numpy as np
import pytest
import torch
import yaml

from fedstage.errors import FedstageError
from fedstage.execution import out_of_memory
from fedstage.execution.out_of_memory import asked_mb, explain_out_of_memory
from fedstage.execution.timings import Taken
from fedstage.plan.graph import never
from fedstage.plan.stages import STAGES
from fedstage.stages import options_of

SETTINGS = {"client": {"batch_size": 64}, "server": {"batch_size": 128}}
ON_GPU = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]


@pytest.fixture
def recipe(tmp_path):
    """A function that writes a recipe with these parts."""

    def write(**settings):
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump({"settings": settings}))
        return path

    return write


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setattr(out_of_memory, "most_taken", lambda: Taken(70_000, 81_559))
    monkeypatch.setenv("FEDSTAGE_WORKERS_PER_GPU", "1")
    monkeypatch.delenv("FEDSTAGE_CLIENTS_PER_GPU", raising=False)


def message(error, stage="local_training", recipe=None, participants=None):
    with pytest.raises(FedstageError) as caught, explain_out_of_memory(stage, recipe, participants):
        raise error
    return str(caught.value)


@pytest.mark.parametrize("error", ON_GPU, ids=["tensor", "context", "library"])
def test_peak_total_and_batch_size_are_named(recipe, error):
    assert message(error, recipe=recipe(**SETTINGS)) == (
        "out of memory on the GPU: 70000 MB taken at the peak, of the GPU's 81559 MB; "
        "lower client.batch_size = 64"
    )


@pytest.mark.parametrize(
    ("stage", "parts", "settings"),
    [
        ("local_model", ["client"], "client.batch_size = 64"),
        ("distillation", ["client", "server"], "server.batch_size = 128"),
        ("segment", ["client"], "client.batch_size = 64"),
        ("segment", ["client", "server"], "client.batch_size = 64 or server.batch_size = 128"),
    ],
)
def test_the_batch_size_is_that_of_the_stage(recipe, stage, parts, settings):
    path = recipe(**{part: SETTINGS[part] for part in parts})
    assert message(ON_GPU[0], stage, path).endswith(f"; lower {settings}")


@pytest.mark.parametrize(
    ("stage", "settings"),
    [
        ("local_training", "client.batch_size = 64 or execution.workers_per_gpu = 3"),
        ("evaluation", "execution.workers_per_gpu = 3"),
    ],
)
def test_workers_that_share_the_gpu_are_named(recipe, monkeypatch, stage, settings):
    monkeypatch.setenv("FEDSTAGE_WORKERS_PER_GPU", "3")
    assert message(ON_GPU[0], stage, recipe(**SETTINGS)).endswith(f"; lower {settings}")


@pytest.mark.parametrize(
    ("stage", "participants", "settings"),
    [
        ("local_training", [2, 3], "client.batch_size = 64 or execution.clients_per_gpu = 4"),
        (
            "segment",
            None,
            "client.batch_size = 64 or server.batch_size = 128 or execution.clients_per_gpu = 4",
        ),
        ("local_training", [2], "client.batch_size = 64"),
        ("distillation", None, "server.batch_size = 128"),
    ],
)
def test_clients_that_share_the_gpu_are_named_where_a_job_has_several(
    recipe, monkeypatch, stage, participants, settings
):
    monkeypatch.setenv("FEDSTAGE_CLIENTS_PER_GPU", "4")
    assert message(ON_GPU[0], stage, recipe(**SETTINGS), participants).endswith(
        f"; lower {settings}"
    )


def test_where_nothing_can_be_lowered_the_cpu_is_left(recipe):
    text = message(ON_GPU[0], "evaluation", recipe(**SETTINGS))
    assert text.endswith("81559 MB; take numerics.device = 'cpu'")


def test_a_gpu_that_others_have_filled(recipe, monkeypatch):
    monkeypatch.setattr(out_of_memory, "most_taken", lambda: None)
    monkeypatch.delenv("FEDSTAGE_WORKERS_PER_GPU")
    text = message(ON_GPU[1], recipe=recipe(**SETTINGS))
    assert text.startswith("out of memory on the GPU: other processes fill the GPU; lower client.")


ON_CPU = r"out of memory: \d+ MB at the peak; "


def test_memory_of_the_machine(recipe):
    path = recipe(**SETTINGS)
    expected = rf"{ON_CPU}lower client\.batch_size = 64, or run fewer jobs at a time \(--cores\)"
    assert re.fullmatch(expected, message(MemoryError(), recipe=path))
    little = MemoryError("Unable to allocate 3.00 MiB for an array with shape (9,)")
    assert re.fullmatch(expected, message(little, recipe=path))


def test_fewer_jobs_are_no_help_for_one_that_is_too_large_alone(recipe):
    with pytest.raises(RuntimeError) as tensor:
        torch.empty(2**55)
    with pytest.raises(MemoryError) as array:
        np.empty(2**47)
    smaller = "take a smaller model or fewer samples"
    for error, asked in ((tensor.value, 2**37), (array.value, 2**30)):
        told = (
            rf"out of memory: \d+ MB at the peak and {asked} MB more wanted, of the machine's \d+"
        )
        told += " MB"
        assert re.fullmatch(rf"{told}; {smaller}", message(error, "dataset"))
        text = message(error, recipe=recipe(**SETTINGS))
        assert re.fullmatch(rf"{told}; lower client\.batch_size = 64, or {smaller}", text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Unable to allocate 3.50 KiB for", 0),
        ("Unable to allocate 3.50 GiB for", 3584),
        ("Unable to allocate 512. MiB for", 512),
        ("you tried to allocate 2097152 bytes.", 2),
        ("", 0),
    ],
)
def test_what_could_not_be_allocated(text, asked):
    assert asked_mb(text) == asked


@pytest.mark.parametrize("stage", ["evaluation", "dataset"])
def test_memory_of_the_machine_in_stages_without_batch_size(recipe, stage):
    path = recipe(**SETTINGS) if STAGES[stage].on_device else None
    expected = rf"{ON_CPU}run fewer jobs at a time \(--cores\)"
    assert re.fullmatch(expected, message(MemoryError(), stage, path))


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("CUDA error: out of")])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as caught, explain_out_of_memory("local_training", None):
        raise error
    assert caught.value is error


WITH_BATCHES = [name for name, stage in STAGES.items() if stage.batches]


@pytest.mark.parametrize("stage", WITH_BATCHES)
def test_stages_with_batch_sizes_compute_on_a_device(stage):
    assert STAGES[stage].on_device is not never


@pytest.mark.parametrize("stage", WITH_BATCHES)
def test_stages_with_batch_sizes_have_a_line(stage):
    assert "recipe" in {option.name for option in options_of(stage)}
