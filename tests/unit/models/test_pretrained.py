import hashlib
import json

import pytest
import torch
from safetensors.torch import save_file
from tests.shared.stages import initial_model
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.pretrained import LAYOUTS, Layout, take_weights
from fedstage.settings.models import Pretrained
from fedstage.storage.files import save_json
from fedstage.storage.tensors import load_tensors

LAYOUT = Layout(classifier=("1.",))


def network(classes, value):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, classes))
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)
    return model


def settings(path, digits=16):
    return Pretrained(file=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest()[:digits])


@pytest.fixture(params=["pth", "safetensors"])
def file(tmp_path, request):
    """Weights of 2 for a network of 5 classes."""
    path = tmp_path / f"weights.{request.param}"
    state = network(5, 2.0).state_dict()
    save_file(state, path) if request.param == "safetensors" else torch.save(state, path)
    return path


def test_all_layers_but_the_last_take_the_weights(file):
    model = network(2, 7.0)
    take_weights(model, settings(file), file.parent, LAYOUT)
    assert [parameter.unique().tolist() for parameter in model.parameters()] == [[2], [2], [7], [7]]


def test_a_file_may_be_of_a_layer_and_have_layers_of_its_own(tmp_path):
    path = tmp_path / "weights.pth"
    extra = {"vocab_norm.weight": torch.zeros(9), "1.weight": torch.zeros(5, 4)}
    given = {"0.weight": torch.full((4, 3), 2.0), "0.bias": torch.full((4,), 2.0)}
    torch.save(given | extra, path)
    model = nn.Module()
    model.network = network(2, 7.0)
    layout = Layout(("1.",), prefix="network.", extra=("vocab_",))
    take_weights(model, settings(path), tmp_path, layout)
    assert [parameter.unique().tolist() for parameter in model.parameters()] == [[2], [2], [7], [7]]
    with pytest.raises(FedstageError, match=r"vocab_norm\.weight: the model has no such tensor"):
        take_weights(model, settings(path), tmp_path, Layout(("1.",), "network."))


def test_another_file_is_refused(file):
    wanted = Pretrained(file=file.name, sha256="0" * 12)
    with pytest.raises(
        FedstageError, match=r"model\.weights\.sha256 = '000000000000': the file's is"
    ):
        take_weights(network(2, 7.0), wanted, file.parent, LAYOUT)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 5)), r"0\.weight has shape \[4, 3\]: must be"),
        (nn.Sequential(nn.ReLU(), nn.Linear(4, 5)), r"0\.(weight|bias): the model has no such"),
        (
            nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 5)),
            r"2\.(weight|bias): missing",
        ),
    ],
    ids=["shape", "too many", "too few"],
)
def test_weights_of_another_model_are_refused(file, model, message):
    with pytest.raises(FedstageError, match=message):
        take_weights(model, settings(file), file.parent, LAYOUT)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")
@pytest.mark.parametrize("content", [b"", b"weights", b"\x80\x04K\x01."], ids=str)
@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_what_are_no_weights_is_told_in_one_line(tmp_path, content, suffix):
    path = tmp_path / f"weights.{suffix}"
    path.write_bytes(content)
    with pytest.raises(
        FedstageError, match=r"cannot be read as weights|must be a state dict"
    ) as caught:
        take_weights(network(2, 7.0), settings(path), tmp_path, LAYOUT)
    assert "\n" not in str(caught.value)


def test_initial_model_of_every_group_starts_from_the_file(tmp_path, monkeypatch):
    from torchvision.models import efficientnet_b0

    given = efficientnet_b0(weights=None)
    path = tmp_path / "efficientnet.pth"
    torch.save(given.state_dict(), path)
    save_json(tmp_path / "info.json", {"shape": [3, 32, 32], "classes": 8})
    chosen = {"efficientnet_b0": {"weights": settings(path).model_dump()}}
    text = json.dumps({"model": chosen, "seed": 0})
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path))
    drawn = []
    for group in (0, 1):
        output = tmp_path / f"{group}.safetensors"
        initial_model(settings=text, group=group, info=tmp_path / "info.json", output=output)
        drawn.append(load_tensors(output)[0])
    (last,) = LAYOUTS["efficientnet_b0"].classifier
    for name, value in given.state_dict().items():
        if not name.startswith(last):
            assert torch.equal(drawn[0][name], value)
            assert torch.equal(drawn[1][name], value)
    assert drawn[0][f"{last}weight"].shape == (8, 1280)
    assert not torch.equal(drawn[0][f"{last}weight"], drawn[1][f"{last}weight"])
