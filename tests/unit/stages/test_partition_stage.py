import json

import numpy as np
import pytest
import torch
from tests.shared.stages import partition

from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA
from fedstage.errors import FedstageError
from fedstage.execution.cli import main
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


def test_histogram_counts_the_clients_file(train):
    clients, histogram = written(train)
    rows = clients.to_pydict()
    for client, role, label, samples in zip(*histogram.to_pydict().values(), strict=True):
        own = zip(rows["client"], rows["role"], rows["sample"], strict=True)
        counted = sum((c, r) == (client, role) and LABELS[s] == label for c, r, s in own)
        assert samples == counted
    assert sum(histogram["samples"].to_pylist()) == SAMPLES


def test_same_inputs_same_bytes_whatever_the_global_generators(train):
    files = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002 - it must not matter
        torch.manual_seed(seed)
        written(train)
        files.append([path.read_bytes() for path in sorted(train.parent.glob("a*.parquet"))])
    assert len(files[0]) == 2
    assert files[0] == files[1]


def test_images_do_not_matter_but_labels_do(train, tmp_path):
    images = torch.full((SAMPLES, 3, 4, 4), 9, dtype=torch.uint8)
    other_images = training_set(tmp_path / "b.safetensors", images=images)
    other_labels = training_set(tmp_path / "c.safetensors", labels=LABELS.flip(0))
    narrow_labels = training_set(tmp_path / "d.safetensors", labels=LABELS.to(torch.int32))
    clients, _ = written(train)
    assert clients.equals(written(other_images, "b")[0])
    assert clients.equals(written(narrow_labels, "d")[0])
    assert not clients.equals(written(other_labels, "c")[0])


def test_seed_matters_and_validation_leaves_the_clients_alone(train):
    clients, _ = written(train)
    other_seed, _ = written(train, "b", seed=5)
    without, _ = written(train, "c", validation=0.0)
    assert clients["sample"] != other_seed["sample"]
    assert clients["sample"] == without["sample"]
    assert clients["client"] == without["client"]
    assert set(without["role"].to_pylist()) == {"train"}


def test_natural_partition_reads_the_client_column(tmp_path):
    column = torch.arange(SAMPLES) % 8
    clients, _ = written(
        training_set(tmp_path / "train.safetensors", clients=column), partition="natural"
    )
    rows = clients.to_pydict()
    assert rows["client"] == column[torch.tensor(rows["sample"])].tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": "natural"}, "no client column"),
        ({"clients": SAMPLES + 1}, "clients = 601: from 1 to the 600 training samples"),
        ({"clients": 0}, r"--settings: clients = 0: must be greater than or equal to 1"),
        ({"validation": 1.0}, r"--settings: validation = 1.0: must be less than 1"),
        ({"partition": {"dirichlet": {}}}, r"--settings: partition.alpha: missing"),
        ({"partition": "pathological"}, r"--settings: partition = 'pathological': unknown"),
        ({"rounds": 3}, r"--settings: rounds = 3: unknown key"),
        ({"partition": {"dirichlet": {"alpha": 1, "min_samples": 76}}}, "at most 75"),
    ],
    ids=str,
)
def test_wrong_settings_end_in_one_line_and_no_file(train, changes, message):
    with pytest.raises(FedstageError, match=message) as raised:
        written(train, **changes)
    assert "\n" not in str(raised.value)
    assert list(train.parent.iterdir()) == [train]


def test_settings_that_are_not_json(train):
    with pytest.raises(FedstageError, match=r"--settings = '\{clients': must be a JSON object"):
        partition(settings="{clients", train=train, output=train, histogram=train)


def test_training_set_without_labels(tmp_path):
    train = training_set(tmp_path / "train.safetensors", labels=None)
    with pytest.raises(FedstageError, match=r"train.safetensors: has no tensor 'labels'"):
        written(train)


def test_command_line(train, tmp_path):
    output, histogram = tmp_path / "out.parquet", tmp_path / "labels.parquet"
    paths = ["--train", train, "--output", output, "--histogram", histogram]
    options = ["--settings", json.dumps(SETTINGS), *map(str, paths)]
    assert main(["partition", *options]) == 0
    clients, labels = written(train)
    assert load_table(output).equals(clients)
    assert load_table(histogram).equals(labels)
