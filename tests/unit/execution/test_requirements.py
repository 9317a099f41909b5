import subprocess
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
from tests.shared.plugins import loaded
from tests.shared.settings import distilled, one_shot

from fedstage.errors import FedstageError
from fedstage.execution import requirements
from fedstage.execution.requirements import (
    check_device,
    check_models,
    check_packages,
    check_weights,
)
from fedstage.models import trial
from fedstage.plan.data_files import data_file
from fedstage.settings.models import Bert, CnnSmall, Pretrained
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate
from fedstage.storage.files import save_json

WEIGHTS = Pretrained(file="bert.pth", sha256="0123456789abcdef")
BERT = Bert(name="bert", weights=WEIGHTS)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_other_devices_are_not_looked_for(device, monkeypatch):
    monkeypatch.setattr(requirements, "usable_gpus", None)
    check_device(device)


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 1), ("cuda:0", 1), ("cuda:1", 2)])
def test_a_gpu_that_is_there(device, gpus, monkeypatch):
    monkeypatch.setattr(requirements, "usable_gpus", lambda: gpus)
    check_device(device)


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_a_gpu_that_is_not_there(device, gpus, monkeypatch):
    monkeypatch.setattr(requirements, "usable_gpus", lambda: gpus)
    with pytest.raises(FedstageError, match=f"device = '{device}': this machine has {gpus} usable"):
        check_device(device)


def test_gpus_are_counted_in_another_process(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(requirements, "subprocess", subprocess)
    requirements.usable_gpus.cache_clear()
    assert requirements.usable_gpus() == 0
    requirements.usable_gpus.cache_clear()


def test_weights_that_are_missing(tmp_path):
    with pytest.raises(FedstageError, match=f"'bert.pth': no such file below {tmp_path}"):
        check_weights(BERT, tmp_path, tmp_path / "made")
    with pytest.raises(FedstageError, match="the data folder is not set"):
        check_weights(BERT, None, tmp_path / "made")


def test_weights_without_a_checksum_are_told_theirs(tmp_path):
    (tmp_path / "bert.pth").write_bytes(b"abc")
    unknown = Bert(name="bert", weights=Pretrained(file="bert.pth"))
    told = r"sha256: give ba7816bf8f01cfea, which .*bert\.pth has"
    with pytest.raises(FedstageError, match=told):
        check_weights(unknown, tmp_path, tmp_path / "nothing")


def test_weights_that_are_there_or_have_been_read(tmp_path):
    check_weights(CnnSmall(name="cnn_small"), None, tmp_path / "made")
    (tmp_path / "made").touch()
    check_weights(BERT, None, tmp_path / "made")
    (tmp_path / "bert.pth").touch()
    check_weights(BERT, tmp_path, tmp_path / "nothing")


def test_settings_without_optional_packages_need_none(monkeypatch):
    monkeypatch.setattr(requirements, "find_spec", lambda name: None)
    check_packages(CnnSmall(name="cnn_small"))
    with pytest.raises(FedstageError, match="transformers, which is not installed; install the "):
        check_packages(BERT)


# --- models that do not fit the data --------------------------------------------------------------

MODEL = """
from typing import Literal

from torch import nn

from fedstage.settings.models import Headed


class TinyNet(Headed):
    name: Literal["tinynet"]
    classes: int = 10


def network(settings, shape, classes):
    {line}
    return nn.Sequential(nn.Flatten(), nn.Linear(64, settings.classes), nn.BatchNorm1d(10))
"""


@pytest.fixture(autouse=True)
def calls(tmp_path, monkeypatch):
    """The commands that are run, here and not in processes of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDSTAGE_PLUGINS", "")
    made = []

    def run(command, **_):
        made.append(command)
        told = trial.main(command[-1])
        return CompletedProcess(command, bool(told), stderr=told)

    monkeypatch.setattr(requirements, "subprocess", SimpleNamespace(run=run))
    return made


@pytest.fixture
def tried(tmp_path, monkeypatch, calls):
    """A function that checks a recipe with a plugin's model, and returns how often one is built."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDSTAGE_PLUGINS", "mine/tinynet.py")

    def check(line="", **settings):
        before = len(calls)
        with loaded("mine/tinynet.py", MODEL.format(line=line)):
            check_models(validate(Recipe, distilled(model="tinynet") | settings, "here"))
        return len(calls) - before

    return check


def test_a_plugin_s_model_is_tried_before_any_job_once_for_its_source_and_the_data(tried):
    assert tried() == 1
    assert tried() == 0
    assert tried(seed=1) == 0
    assert tried("pass") == 1
    assert tried(data="cifar10", model="logistic_regression") == 0
    assert tried(client={"epochs": 1, "batch_size": 4, "learning_rate": 1}) == 0
    assert tried(data="heart_disease", model="logistic_regression") == 0


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"model": {"tinynet": {"classes": 9}}}, "mine/tinynet.py: tinynet: "),
        ({"line": "raise KeyError(3)"}, "mine/tinynet.py, line 15: KeyError: 3"),
        (
            {"client": {"epochs": 1, "batch_size": 1, "learning_rate": 1}},
            "got input size torch.Size([1, 10]) (client.batch_size = 1)",
        ),
    ],
)
def test_a_plugin_s_model_that_does_not_fit_is_told_in_one_line_each_time(tried, settings, fault):
    for _ in range(2):
        with pytest.raises(FedstageError) as caught:
            tried(**settings)
        assert fault in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_trial_is_made_in_a_process_of_its_own_and_not_repeated(tried, monkeypatch):
    with monkeypatch.context() as real:
        real.setattr(requirements, "subprocess", subprocess)
        with pytest.raises(FedstageError, match=r"^mine/tinynet.py: tinynet: .* 9 elements"):
            tried(model={"tinynet": {"classes": 9}})
        tried()
    assert tried() == 0


CIFAR = {"parquet": {"folder": "cifar10", "train_size": 60}}
RESNET = one_shot(data=CIFAR, model="resnet18", clients=10)
SMALL = CIFAR["parquet"] | {"image_size": 16}
KEPT = {"epochs": 1, "batch_size": 5, "learning_rate": 1, "last_batch": "keep"}


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({}, None),
        ({"clients": 31}, "(clients = 31 with 60 samples, client.last_batch = merge_single)"),
        ({"clients": 31, "model": "resnet8"}, None),
        ({"clients": 31, "data": {"parquet": CIFAR["parquet"] | {"image_size": 64}}}, None),
        ({"client": KEPT}, "(clients = 10 with 60 samples, client.last_batch = keep)"),
        ({"client": KEPT, "validation": 0.4}, None),
        ({"client": {**KEPT, "batch_size": 1}, "model": "efficientnet_b0"}, "batch_size = 1)"),
        ({"data": {"parquet": SMALL}}, "images of 16x16 pixels (shape [3, 16, 16]): needs at"),
        ({"data": "digits", "model": "resnet8"}, None),
    ],
)
def test_batches_of_one_and_small_images_are_told_where_they_cannot_be_trained(
    settings, fault, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    recipe = validate(OneShotRecipe, RESNET | settings, "here")
    if fault is None:
        check_models(recipe)
        return
    with pytest.raises(FedstageError) as caught:
        check_models(recipe)
    assert fault in str(caught.value)


def test_data_that_have_been_read_say_what_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = {"image_folder": {"folder": "pictures"}}
    recipe = validate(OneShotRecipe, RESNET | {"data": data}, "here")
    check_models(recipe)
    path = tmp_path / data_file(recipe.data, "info")
    path.parent.mkdir(parents=True)
    save_json(path, {"shape": [3, 16, 40], "classes": 3, "train": 90})
    with pytest.raises(FedstageError, match="images of 16x40 pixels"):
        check_models(recipe)
