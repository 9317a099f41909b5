import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from tests.shared.stages import run_command

from fedstage.execution.jobs import Work, record_of, write_record
from fedstage.execution.notes import Notices
from fedstage.plan.source import source_of_job
from fedstage.plan.training import aggregation
from fedstage.storage.files import load_json
from fedstage.storage.provenance import content_digest, machine, versions
from fedstage.storage.tensors import save_tensors

FIGURES = {"startup_s": 0.5, "compute_s": 1.25, "peak_memory_mb": 300}


def recorded(folder, inputs=None, outputs=None, **place):
    record = folder / "logs/job.1.json"
    work = Work("aggregation", str(record), inputs or {}, outputs or {}, [], lambda: None, place)
    write_record(work, "fedstage run aggregation", None, FIGURES, None, [], Notices())
    return load_json(record)


@pytest.fixture
def files(tmp_path):
    """Some small files with their digests."""
    paths = [tmp_path / name for name in ("a.json", "b.parquet", "c.yaml", "d.csv")]
    for path in paths:
        path.write_text(f"content of {path.name}")
    return {path: sha256(path.read_bytes()).hexdigest()[:16] for path in paths}


def test_files_are_inputs_and_outputs_with_digests_by_name(tmp_path, files):
    a, b, c, d = map(str, files)
    read = {"recipe": a, "start": a, "updates": [b, c], "state": None}
    record = recorded(tmp_path, read, {"output": d}, round=2, group=0)
    digests = {str(path): digest for path, digest in files.items()}
    assert record["inputs"] == {
        "recipe": {a: digests[a]},
        "start": {a: digests[a]},
        "updates": {b: digests[b], c: digests[c]},
    }
    assert record["outputs"] == {"output": {d: digests[d]}}
    assert record["options"] == {"round": 2, "group": 0}


def test_a_record_says_stage_time_versions_and_figures(tmp_path):
    record = recorded(tmp_path)
    assert record["stage"] == "aggregation"
    assert record["versions"] == versions()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["made"])
    assert FIGURES.items() <= record.items()


def test_a_record_has_the_planned_modules_and_none_of_a_job_by_hand(small, small_recipe):
    job = aggregation.job(small_recipe, 1, 1)
    record, source = record_of(job), source_of_job(job)
    assert load_json(record)["source"] == source.parts()
    assert "fedstage.algorithm.aggregation.averages" in source.parts()
    Path(source.file).unlink()
    run_command("aggregation", job.folder, **job.at)
    assert load_json(record)["source"] is None


def test_a_file_that_is_not_there_has_no_digest(tmp_path):
    record = recorded(tmp_path, {"models": [str(tmp_path / "gone"), str(tmp_path)]})
    assert record["inputs"]["models"] == {str(tmp_path / "gone"): None, str(tmp_path): None}


def test_a_record_says_on_what_it_was_computed(tmp_path):
    found = recorded(tmp_path)["machine"]
    assert found.keys() == {"processor", "cores", "gpu"}
    assert found["processor"]
    assert 1 <= found["cores"] <= (os.cpu_count() or 1)
    assert found["gpu"] is None  # these tests use none


def test_the_gpu_is_named_where_the_process_has_used_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    assert machine()["gpu"] == "a GPU"


def test_to_name_the_gpu_torch_is_not_imported():
    code = (
        "import sys; from fedstage.storage.provenance import machine; machine(); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()


def test_versions_are_those_of_what_computes():
    assert versions()["torch"] == version("torch")
    assert versions().keys() == {"fedstage", "torch", "numpy", "python"}


# --- digests --------------------------------------------------------------------------------------


@pytest.fixture
def tensors(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"a": torch.arange(6.0), "b": torch.ones(2, 2)}, {"round": 1})
    return path


def whole_digest(path):
    return sha256(path.read_bytes()).hexdigest()[:16]


def test_tensors_have_the_digest_that_they_state(tensors):
    raw = tensors.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert content_digest(tensors) == header["__metadata__"]["sha256"][:16]
    assert content_digest(tensors) != whole_digest(tensors)


def test_other_tensors_or_notes_have_another_digest(tensors, tmp_path):
    before = content_digest(tensors)
    save_tensors(tensors, {"a": torch.arange(6.0), "b": torch.ones(2, 2)}, {"round": 2})
    notes = content_digest(tensors)
    save_tensors(tensors, {"a": torch.arange(6.0), "b": torch.zeros(2, 2)}, {"round": 1})
    assert len({before, notes, content_digest(tensors)}) == 3


def test_no_tensors_have_a_digest_too(tmp_path):
    save_tensors(tmp_path / "none.safetensors", {}, {"diverged_at": 3})
    assert content_digest(tmp_path / "none.safetensors") != whole_digest(
        tmp_path / "none.safetensors"
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:20],
        lambda raw: raw[:3],
        lambda raw: b"",
        lambda raw: b"\xff" * 8 + raw[8:],
        lambda raw: raw.replace(b"sha256", b"sha255"),
        lambda raw: raw[:8] + b"[" + raw[9:],
    ],
)
def test_what_states_nothing_is_digested_as_a_whole(tensors, damage):
    tensors.write_bytes(damage(tensors.read_bytes()))
    assert content_digest(tensors) == whole_digest(tensors)
