"""What is wrong with the files of a real run."""

import shutil
from pathlib import Path

import pytest
import torch

from fedstage.plan import data_files
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    participants_table,
    updates,
)
from fedstage.storage.files import load_json, save_json
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.storage.verification import faults


@pytest.fixture
def files(small):
    """All files but logs."""
    paths = (path for path in Path("results").rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if "logs" not in path.parts)


def found(files):
    return dict(faults(Path(), files, set(files)))


def test_nothing_is_wrong_with_what_stages_wrote(files):
    assert len(files) > 20
    assert found(files) == {}


def test_all_is_well_in_another_folder(files, small, monkeypatch):
    monkeypatch.chdir("/")
    assert dict(faults(small, files, set(files))) == {}


def test_a_flipped_bit_of_every_kind_of_file(files):
    some = {Path(name).suffix: name for name in files}
    assert set(some) == {".safetensors", ".parquet", ".json", ".yaml"}
    for name in some.values():
        raw = bytearray(Path(name).read_bytes())
        raw[len(raw) // 2] ^= 1
        Path(name).write_bytes(raw)
    assert set(some.values()) <= set(found(files))


def test_a_copy_and_what_was_made_from_the_file_in_its_place(files, small_recipe):
    one, other = updates(small_recipe, 1, 0)[:2]
    shutil.copy(one, other)
    wrong = found(files)
    assert wrong[other].endswith("a copy in its place")
    average = aggregated_model(small_recipe, 1, 0)
    assert wrong[average].startswith(f"was made from another {other}: ")
    assert set(wrong) == {
        other,
        average,
        participants_table(small_recipe, 1, 0),
        aggregation(small_recipe, 1, 0, output="new_state"),
    }


def test_another_content_under_the_same_name(files, small_recipe):
    path = global_model(small_recipe, 1, 0)
    weights, metadata = load_tensors(path)
    save_tensors(path, {name: torch.zeros_like(one) for name, one in weights.items()}, metadata)
    wrong = found(files)
    assert set(wrong) == {path}
    assert wrong[path].startswith("is not what its job wrote: ")
    assert dict(faults(Path(), files, set(files) - {path})) == {}  # it is made anew


def test_files_that_are_gone_are_no_other_files(files, small_recipe):
    gone = updates(small_recipe, 1, 0)[0]
    Path(gone).unlink()
    assert found([name for name in files if name != gone]) == {}


def test_a_damaged_record_is_told_and_the_others_count(files, small_recipe):
    record = Path("results/logs/aggregation/1.record.json")
    record.write_text(record.read_text().replace("aggregation", "aggregatioN", 1))
    average = aggregated_model(small_recipe, 1, 0)
    Path(average).write_bytes(b"")
    wrong = found(files)
    assert "altered" in wrong[str(record)]
    assert "truncated" in wrong[average]


def test_a_later_segment_may_have_made_it_anew(files, small_recipe):
    path = updates(aggregation.job(small_recipe, 1, 1).config, 1, 1)[0]
    tensors, metadata = load_tensors(path)
    save_tensors(path, tensors, metadata | {"loss": 0.0})
    assert path in found(files)
    segment = load_json(Path("results/logs/aggregation/1.record.json"))
    segment |= {"stage": "segment", "outputs": {}, "inputs": {}, "made": "2999-01-01T00:00:00"}
    segment["options"] = {"first": 1, "last": 1, "groups": [1]}
    save_json(Path("results/logs/segment/s.record.json"), segment)
    assert path not in found([path])


def test_the_participants_are_plain_parquet(small, small_recipe):
    import pandas as pd

    frame = pd.read_parquet(data_files.participation_table(small_recipe, 1))
    assert set(frame["participant"]) == {0, 1, 2, 3}
