"""The core: labelled training samples that the server has of its own."""

import json

import pytest
import torch
from tests.shared.stages import core, partition

from fedstage.errors import FedstageError
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, save_tensors

SAMPLES, CLIENTS = 300, 4
IMAGES = torch.randint(256, (SAMPLES, 1, 2, 2), generator=torch.Generator().manual_seed(1)).byte()
LABELS = torch.arange(SAMPLES) % 10


def settings_of(classes="all", **changes):
    """Return the settings of a partition as JSON."""
    core = {"classes": classes}
    settings = {"clients": CLIENTS, "partition": "iid", "validation": 0.2, "core": core, "seed": 3}
    return json.dumps(settings | changes)


def parted(tmp_path, **changes):
    """Write a training set and its partition with a core; return their files."""
    train, info = tmp_path / "train.safetensors", tmp_path / "info.json"
    save_tensors(train, {"images": IMAGES, "labels": LABELS})
    save_json(info, {"classes": 10})
    clients, histogram = tmp_path / "clients.parquet", tmp_path / "histogram.parquet"
    partition(settings=settings_of(**changes), train=train, output=clients, histogram=histogram)
    return {"data": train, "clients": clients, "info": info}, histogram


def rows_of(files):
    return load_table(files["clients"]).to_pylist()


def test_the_core_is_one_more_share_which_no_client_has(tmp_path):
    files, histogram = parted(tmp_path)
    rows = rows_of(files)
    own = [row for row in rows if row["role"] == "core"]
    assert {row["client"] for row in own} == {CLIENTS}
    assert len(own) == SAMPLES // (CLIENTS + 1)
    assert {row["client"] for row in rows if row["role"] != "core"} == set(range(CLIENTS))
    assert sorted(row["sample"] for row in rows) == list(range(SAMPLES))
    counted = [row for row in load_table(histogram).to_pylist() if row["role"] == "core"]
    assert sum(row["samples"] for row in counted) == len(own)


def test_a_missing_class_is_told_in_one_line_or_allowed(tmp_path):
    files, _ = parted(tmp_path, partition={"dirichlet": {"alpha": 0.05, "min_samples": 1}})
    output = tmp_path / "core.safetensors"
    own = {int(LABELS[row["sample"]]) for row in rows_of(files) if row["role"] == "core"}
    missing = sorted(set(range(10)) - own)
    assert missing, "the partition is as skewed as the test needs"
    with pytest.raises(FedstageError) as error:
        core(**files, settings=settings_of("all"), output=output)
    assert str(error.value).startswith(
        f"core.classes = 'all': {len(missing)} of 10 classes have no sample"
    )
    assert f"such as class {missing[0]}" in str(error.value)
    assert "core.samples = stratified, core.classes = some" in str(error.value)
    assert not output.exists()
    core(**files, settings=settings_of("some"), output=output)
    assert set(load_tensors(output)[0]["labels"].tolist()) == own
