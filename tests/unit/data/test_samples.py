import sys

import pytest
import torch

import fedstage.data.samples as samples_module
from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.data.samples import read_labelled, read_owned, read_samples
from fedstage.errors import FedstageError
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import save_tensors

CPU = torch.device("cpu")


@pytest.fixture
def clients(tmp_path):
    columns = {
        "client": [0, 0, 1, 1, 0],
        "sample": [7, 3, 5, 2, 4],
        "role": ["train", "validation", "train", "validation", "train"],
    }
    save_table(tmp_path / "clients.parquet", columns, CLIENTS_SCHEMA)
    return tmp_path / "clients.parquet"


def test_samples_of_a_role_are_read_in_the_order_of_the_table_with_their_owners(clients):
    samples, owners = read_owned(clients, "train")
    assert samples.tolist() == [7, 5, 4]
    assert owners.tolist() == [0, 1, 0]
    assert samples.dtype == owners.dtype == torch.int64


@pytest.mark.parametrize(
    ("role", "client", "fault"),
    [
        ("train", 9, "role 'train' for client 9"),
        ("aggregator", None, "role 'aggregator' for any client; set aggregator_fraction above 0"),
    ],
)
def test_a_role_or_client_without_samples_is_refused(clients, role, client, fault):
    with pytest.raises(FedstageError, match=fault):
        read_samples(clients, role, client)


def arrays(path, samples=4, shape=(1, 2, 2), highest=2):
    images = torch.zeros(samples, *shape, dtype=torch.uint8)
    labels = torch.linspace(0, highest, samples).to(torch.int64)
    save_tensors(path, {"images": images, "labels": labels})
    return path


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        ({"shape": (3, 2, 2)}, r"shape \[1, 2, 2\]|shape \[3, 2, 2\]"),
        ({"highest": 9}, r"its data set has 3 classes"),
        ({"samples": 3}, r"has 3 samples, and the partition, of another data set, names sample 3"),
    ],
)
def test_files_of_another_data_set_are_refused(tmp_path, other, fault):
    info, chosen = {"shape": [1, 2, 2], "classes": 3}, torch.tensor([3, 0])
    right = arrays(tmp_path / "train.safetensors")
    images, labels = read_labelled(right, chosen, CPU, info)
    assert (len(images), labels.tolist()) == (2, [2, 0])
    with pytest.raises(FedstageError, match=fault) as caught:
        read_labelled(arrays(tmp_path / "other.safetensors", **other), chosen, CPU, info)
    assert str(caught.value).startswith(str(tmp_path / "other.safetensors"))


def anonymous_kilobytes():
    """Return the memory of this process that is in no file."""
    with open("/proc/self/smaps_rollup") as rollup:
        sizes = dict(line.split(":") for line in rollup.readlines()[1:])
    return int(sizes["Anonymous"].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/smaps_rollup")
def test_a_worker_holds_no_copy_of_a_data_set(tmp_path):
    megabytes = 64
    images = torch.arange(megabytes * 2**20).to(torch.uint8).reshape(-1, 1, 32, 32)
    path = tmp_path / "train.safetensors"
    save_tensors(path, {"images": images, "labels": torch.arange(len(images))})
    before = anonymous_kilobytes()

    taken, labels = read_labelled(path, torch.tensor([5, 0, 900]), CPU)

    assert torch.equal(taken, images[[5, 0, 900]])
    assert labels.tolist() == [5, 0, 900]
    assert anonymous_kilobytes() - before < megabytes * 1024 / 4


def test_a_partition_is_parsed_once_and_again_when_it_has_changed(clients, monkeypatch):
    read = []
    real = samples_module.load_table
    monkeypatch.setattr(samples_module, "load_table", lambda *at: read.append(at) or real(*at))
    first = read_samples(clients, "train")
    assert read_samples(clients, "train").tolist() == first.tolist()
    assert len(read) == 1
    clients.touch()
    read_samples(clients, "train")
    assert len(read) == 2
