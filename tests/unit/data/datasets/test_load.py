import logging

import pytest
import torch

from fedstage.data.datasets import check_classes, load
from fedstage.errors import FedstageError
from fedstage.settings.data import ParquetData, TorchvisionData

NEED_A_FOLDER = [
    TorchvisionData(name="svhn"),
    ParquetData(name="parquet", folder="cifar10"),
]


@pytest.mark.parametrize("settings", NEED_A_FOLDER)
def test_data_folder_that_is_not_set_is_explained(settings):
    hint = "not set; set data_folder in config.yaml or FEDSTAGE_DATA"

    with pytest.raises(FedstageError, match=f"data = {settings.name}: .*{hint}"):
        load(settings, None)


@pytest.mark.parametrize("settings", NEED_A_FOLDER)
def test_data_folder_that_does_not_exist_is_named(settings, tmp_path):
    folder = tmp_path / "absent"

    with pytest.raises(FedstageError, match=f"{folder}: no such folder; set data_folder"):
        load(settings, folder)
    assert not folder.exists()


# --- classes --------------------------------------------------------------------------------------


CLASSES = ("ant", "bee", "cat")


def test_a_single_class_is_refused():
    with pytest.raises(
        FedstageError, match=r"^data = mine: all training samples are of class 'bee'"
    ):
        check_classes("mine", CLASSES, torch.tensor([1, 1, 1]), torch.tensor([0, 1]))


def test_a_test_class_that_no_client_has_is_told(caplog):
    with caplog.at_level(logging.WARNING, "fedstage"):
        check_classes("mine", CLASSES, torch.tensor([0, 1]), torch.tensor([2, 1, 2]))
    assert caplog.messages == [
        "data = mine: no client has samples of class 'cat', which 2 of 3 test samples are of"
    ]
