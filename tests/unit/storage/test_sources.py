"""Which source made a file: stated in it, and compared with the plan's."""

import json

import pyarrow as pa
import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.storage.files import load_json, save_json
from fedstage.storage.identity import making
from fedstage.storage.tables import load_table, save_rows
from fedstage.storage.tensors import load_tensors, save_tensors

SCHEMA = pa.schema([("a", pa.int64())])
KINDS = {
    "a.safetensors": (lambda path: save_tensors(path, {"a": torch.ones(2)}), load_tensors),
    "a.parquet": (lambda path: save_rows(path, [{"a": 1}], SCHEMA), load_table),
    "a.json": (lambda path: save_json(path, {"a": 1}), load_json),
}


def test_a_file_of_another_source_is_refused_where_the_plan_names_sources(tmp_path):
    for name, (save, load) in KINDS.items():
        path = tmp_path / "results/training/x" / name
        with making("old"):
            save(path)
        for read in (["new"], ["new", "newer"]):
            with (
                making("own", read),
                pytest.raises(FedstageError, match="made by source old, not by that of the plan"),
            ):
                load(path)
        for source, read in (("own", ["old"]), ("old", ["new"]), ("own", []), (None, [])):
            with making(source, read):
                load(path)
        load(path)


def test_a_file_without_a_source_is_refused_unless_settings_alone_determine_it(tmp_path):
    for place, refused in {"tables/a": True, "descriptions/a": False, "logs/a": False}.items():
        path = tmp_path / "results" / place / "a.json"
        save_json(path, {"a": 1})
        with making("own", ["new"]):
            if refused:
                with pytest.raises(FedstageError, match="a source that it does not state"):
                    load_json(path)
            else:
                load_json(path)
    with making("own"):
        save_json(path, {"a": 1})
    assert "source" not in json.loads(path.read_text())["fedstage"]


def test_what_a_job_wrote_is_noted(tmp_path):
    with making("own") as job:
        save_json(tmp_path / "a.json", {})
    save_json(tmp_path / "b.json", {})
    assert list(job.written) == [str(tmp_path / "a.json")]
