import pytest

from fedstage.errors import FedstageError
from fedstage.execution import requirements
from fedstage.execution.requirements import check_device, check_packages, check_weights
from fedstage.settings.models import Bert, CnnSmall, Pretrained

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
