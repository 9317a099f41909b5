import json

import numpy as np
import pytest
import torch
from tests.shared.stages import partition

from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA
from fedstage.errors import FedstageError
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import save_tensors

SAMPLES = 600
LABELS = torch.from_numpy(np.random.default_rng(2).integers(0, 10, SAMPLES))
SETTINGS = {
    "clients": 8,
    "partition": {"name": "dirichlet", "alpha": 0.5},
    "validation": 0.2,
    "seed": 4,
}


@pytest.fixture
def train(tmp_path):
    return training_set(tmp_path / "train.safetensors")


def training_set(path, **changes):
    images = torch.zeros(SAMPLES, 1, 2, 2, dtype=torch.uint8)
    tensors = {"images": images, "labels": LABELS} | changes
    save_tensors(path, {name: tensor for name, tensor in tensors.items() if tensor is not None})
    return path


def written(train, name="a", **changes):
    output, histogram = train.parent / f"{name}.parquet", train.parent / f"{name}_labels.parquet"
    settings = json.dumps(SETTINGS | changes)
    partition(settings=settings, train=train, output=output, histogram=histogram)
    return load_table(output), load_table(histogram)


def test_files_have_the_documented_schemas(train):
    clients, histogram = written(train)
    assert clients.schema.remove_metadata() == CLIENTS_SCHEMA
    assert histogram.schema.remove_metadata() == HISTOGRAM_SCHEMA


@pytest.mark.parametrize(
    "scheme",
    [
        "iid",
        {"dirichlet": {"alpha": 1}},
        {"dirichlet_equal": {"alpha": 0.5}},
        {"shards": {"classes_per_client": 3}},
    ],
    ids=str,
)
def test_every_sample_has_one_client_and_one_role(train, scheme):
    clients, _ = written(train, partition=scheme)
    rows = clients.to_pydict()
    assert sorted(rows["sample"]) == list(range(SAMPLES))
    assert set(rows["client"]) == set(range(8))
    keys = list(zip(rows["client"], rows["sample"], strict=True))
    assert keys == sorted(keys)
    for client in range(8):
        roles = [r for r, c in zip(rows["role"], rows["client"], strict=True) if c == client]
        assert roles.count("validation") == round(0.2 * len(roles))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": "natural"}, "no client column"),
        ({"clients": SAMPLES + 1}, "clients = 601: from 1 to the 600 training samples"),
        ({"partition": {"dirichlet": {"alpha": 1, "min_samples": 76}}}, "at most 75"),
    ],
    ids=str,
)
def test_wrong_settings_end_in_one_line_and_no_file(train, changes, message):
    with pytest.raises(FedstageError, match=message) as raised:
        written(train, **changes)
    assert "\n" not in str(raised.value)
    assert list(train.parent.iterdir()) == [train]
