import pytest

from fedstage.data.datasets import load
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
