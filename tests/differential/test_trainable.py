"""Models that are trained in part, against plain PyTorch; and what then reads and writes files."""

import json
from pathlib import Path

import pytest
import torch
from tests.shared.recipes import FEDDF, SECURE
from tests.shared.settings import distilled
from tests.shared.stages import make_all
from torch import nn
from torch.func import functional_call

from fedstage.algorithm.exchange.updates import read_updates
from fedstage.data.samples import read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.loading import build, new_model
from fedstage.models.parts import freeze, tensors_of
from fedstage.plan import data_files
from fedstage.plan.graph import files_in
from fedstage.plan.training import aggregation, global_model, updates
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, Lora
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors
from fedstage.training.batches import client_batches

HEAD = ["linear2.bias", "linear2.weight"]
NETWORK = {"name": "cnn_small", "width": 2, "hidden": 5, "norm": "batch"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def recipe(trainable="head", **changes):
    given = {
        "model": NETWORK | {"trainable": trainable},
        "participants": 4,
        "numerics": {"device": "cpu"},
    }
    return Recipe.model_validate(distilled(**given) | changes)


LORA = {"rank": 2, "alpha": 6.0, "targets": ["conv*", "linear1"]}
PARTS = {"head": "head", "head and norm": ["head", "norm"], "FedIT": {"lora": LORA},
         "FFA-LoRA": [{"lora": LORA | {"freeze_a": True}}, "head"],
         "FLoRA": [{"lora": LORA | {"merged": True}}, "head"]}  # fmt: skip


def composed(tensors):
    """The weights of a plain network, to which the products are added."""
    whole = {}
    for name, value in tensors.items():
        place, adapted, which = name.partition(".parametrizations.weight.")
        if not adapted:
            whole[name] = value
        elif which == "original":
            a, b = (tensors[f"{place}{adapted}0.{one}"] for one in "ab")
            merged = tensors.get(f"{place}{adapted}0.merged", 0)
            whole[f"{place}.weight"] = value + merged + 3 * (b @ a).view(value.shape)
    return whole


@pytest.mark.parametrize("trainable", PARTS.values(), ids=PARTS)
def test_two_rounds_are_those_of_plain_tensors(trainable):
    chosen = recipe(trainable, model=NETWORK | {"norm": "group", "trainable": trainable})
    make_all(global_model(chosen, 2, 0), data_files.info(chosen))
    info = read_info(Path(data_files.info(chosen)))
    network = build(CnnSmall.model_validate(NETWORK | {"norm": "group"}), (1, 8, 8), 10)
    begun, _ = load_tensors(global_model(chosen, 0, 0))
    assert all(
        value.any() != name.endswith((".b", ".merged"))
        for name, value in begun.items()
        if "0." in name
    )
    ours = begun
    data = Path(data_files.samples_file(chosen, "train"))
    for round_ in (1, 2):
        sums, total = dict.fromkeys(ours, 0.0), 0
        for client in range(4):
            own = read_samples(Path(data_files.clients_table(chosen)), "train", client)
            images, labels = read_labelled(data, own, torch.device("cpu"), info)
            pixels = (images.float() / 255 - info["mean"][0]) / info["std"][0]
            merged = {name: value for name, value in ours.items() if name.endswith("merged")}
            trained = {
                n: one.clone().requires_grad_() for n, one in ours.items() if n not in merged
            }
            key = torch_generator(chosen.seed, "local_training", round_, client, "batches")
            for batch in client_batches(len(labels), chosen.client, key):
                logits = functional_call(
                    network, composed(info["base"] | trained | merged), pixels[batch]
                )
                loss = nn.functional.cross_entropy(logits, labels[batch])
                slopes = torch.autograd.grad(loss, [*trained.values()])
                for value, slope in zip(trained.values(), slopes, strict=True):
                    value.data -= chosen.client.learning_rate * slope
            for name, value in trained.items():
                sums[name] += len(labels) * value.detach().double()
            for name, before in merged.items():
                a, b = (trained[name.replace("merged", one)].detach() for one in "ab")
                sums[name] += len(labels) * (before + 3 * (b @ a).view(before.shape))
            total += len(labels)
        ours = {name: (value / total).float() for name, value in sums.items()}
        saved, _ = load_tensors(global_model(chosen, round_, 0))
        for name in merged:
            a, b = (name.replace("merged", one) for one in "ab")
            assert 0 < saved[a].abs().max() <= saved[a].shape[1] ** -0.5
            assert not torch.equal(saved[a], begun[a])
            ours |= {a: saved[a], b: torch.zeros_like(saved[b])}
    assert saved.keys() == ours.keys()
    averages_a = "lora" in str(trainable) and "freeze_a" not in str(trainable)
    assert any(name.endswith("0.a") for name in saved) == averages_a
    for name, value in saved.items():
        assert torch.allclose(value, ours[name], atol=1e-6), name
        assert not torch.equal(value, begun[name]) or (merged and name.endswith("b")), name
    for update in read_updates([Path(path) for path in updates(chosen, 2, 0)]):
        assert update.weights.keys() == saved.keys() - merged.keys()


METHODS = {
    "fedavg": {},
    "feddf": FEDDF,
    "scaffold": {"local": "scaffold"},
    "compression": {"compression": {"stc": {"sparsity": 0.5, "bits": 16}}},
    "privacy of clients": {"aggregation": {"weights": "uniform"},
                           "privacy": {"client": {"clip": 1.0, "noise": 0.5, "delta": 1e-5}}},
    "privacy of examples": {"privacy": {"example": {"clip": 1.0, "noise": 0.5, "delta": 1e-5}}},
    "secure": SECURE,
}  # fmt: skip


@pytest.mark.parametrize("changes", METHODS.values(), ids=METHODS)
def test_files_of_rounds_hold_trained_tensors_alone(changes):
    chosen = recipe(**changes)
    last = global_model(chosen, 2, 0)
    make_all(last)
    assert sorted(load_tensors(last)[0]) == HEAD
    for update in (
        [] if changes is SECURE else read_updates([Path(p) for p in updates(chosen, 2, 0)])
    ):
        assert sorted(update.weights) == HEAD
        assert {*update.payload, *update.residual} <= {*HEAD}
    if changes is not SECURE and "compression" not in changes:
        table = load_table(aggregation(chosen, 2, 0, output="participants")).to_pydict()
        assert set(table["bytes_up"]) == {4 * (5 + 1) * 10 * (1 + ("local" in changes))}


def test_all_parts_together_train_as_the_whole():
    names = ["conv1", "conv2", "norm", "linear1", "head"]
    whole = recipe(names)
    usual = recipe(model=NETWORK)
    for one in (whole, usual):
        make_all(global_model(one, 2, 0))
    ours, _ = load_tensors(global_model(whole, 2, 0))
    plain, _ = load_tensors(global_model(usual, 2, 0))
    assert ours.keys() == plain.keys()
    assert all(torch.equal(ours[name], plain[name]) for name in plain)


def test_frozen_tensors_are_of_one_file_and_stay_through_training_and_copies():
    chosen = recipe(global_models=2)
    make_all(global_model(chosen, 0, 0), global_model(chosen, 0, 1), data_files.info(chosen))
    info = read_info(Path(data_files.info(chosen)))
    models = [new_model(chosen.model, info, torch.device("cpu")) for _ in range(2)]
    assert {*info["base"], *HEAD} == {
        *build(CnnSmall.model_validate(NETWORK), (1, 8, 8), 10).state_dict()
    }
    models[0].train()(torch.randn(8, 1, 8, 8))
    for (name, one), (_, other) in zip(*(model.named_buffers() for model in models), strict=True):
        assert torch.equal(one, other), name
    heads = [load_tensors(global_model(chosen, 0, k))[0] for k in range(2)]
    assert not torch.equal(heads[0]["linear2.weight"], heads[1]["linear2.weight"])


def test_every_job_of_rounds_that_reads_the_info_reads_the_base():
    chosen = recipe(**FEDDF)
    base = data_files.info(chosen)
    read = {*files_in(updates(chosen, 1, 0)[0].job.inputs)} | {
        *files_in(global_model(chosen, 1, 0).job.inputs)
    }
    assert base in read
    assert not any(file.endswith("info.json") for file in read)
    assert json.loads(json.dumps(data_files.info(recipe(model=NETWORK)))).endswith("info.json")


@pytest.mark.parametrize("targets", [["linear"], ["linear2"], ["norm", "*.bias"]], ids=str)
def test_targets_without_weights_that_stay_are_refused(targets):
    model = build(CnnSmall.model_validate(NETWORK), (1, 8, 8), 10)
    with pytest.raises(FedstageError, match=r"model.trainable.lora.targets = "):
        freeze(model, ["linear2", Lora(lora={"targets": targets})])


@pytest.mark.parametrize("part", ["linear", "linear2.weigh", "tail"])
def test_an_unknown_part_is_refused(part):
    model = build(CnnSmall.model_validate(NETWORK), (1, 8, 8), 10)
    with pytest.raises(FedstageError, match=f"model.trainable = '{part}'"):
        tensors_of(model, [part])
    assert tensors_of(model, ["head"]) == tensors_of(model, ["linear2"]) == sorted(HEAD)[::-1]
