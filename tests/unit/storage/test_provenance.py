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

from fedstage.plan.stages import RECIPES, STAGES
from fedstage.stages import options_of
from fedstage.storage.provenance import content_digest, machine, versions, write_record
from fedstage.storage.records import records_of
from fedstage.storage.tensors import save_tensors

RULES = Path(__file__).parents[3] / "workflow/rules"
OUTPUTS = {name: stage.outputs for name, stage in STAGES.items() if stage.outputs}
FIGURES = {"startup_s": 0.5, "compute_s": 1.25, "peak_memory_mb": 300}


def recorded(folder, stage, options, source="0123456789ab"):
    log = folder / "logs" / "job.1.log"
    write_record(log, stage, options, source, FIGURES)
    return json.loads((folder / "logs" / "job.1.record.json").read_text())


@pytest.fixture
def files(tmp_path):
    """Some small files with their digests."""
    paths = [tmp_path / name for name in ("a.json", "b.parquet", "c.yaml", "d.csv")]
    for path in paths:
        path.write_text(f"content of {path.name}")
    return {path: sha256(path.read_bytes()).hexdigest()[:16] for path in paths}


def test_files_are_inputs_and_outputs_with_digests_by_option(tmp_path, files):
    a, b, c, d = files
    options = {"recipe": a, "start": a, "updates": [b, c], "state": None, "output": d}
    record = recorded(tmp_path, "aggregation", options)
    assert record["inputs"] == {
        "recipe": {str(a): files[a]},
        "start": {str(a): files[a]},
        "updates": {str(b): files[b], str(c): files[c]},
    }
    assert record["outputs"] == {"output": {str(d): files[d]}}
    assert record["options"] == {}


def test_the_same_option_is_an_input_of_one_stage_and_an_output_of_another(tmp_path, files):
    a, b, *_ = files
    options = {"train": a, "output": b}
    assert recorded(tmp_path, "partition", options)["inputs"].keys() == {"train"}
    assert recorded(tmp_path, "dataset", {"train": a})["outputs"].keys() == {"train"}


def test_what_is_no_file_is_an_option(tmp_path):
    options = {"round": 2, "groups": [0, 1], "role": "test", "client": None, "state": None}
    record = recorded(tmp_path, "segment", options)
    assert record["options"] == {"round": 2, "groups": [0, 1], "role": "test"}
    assert (record["inputs"], record["outputs"]) == ({}, {})


def test_a_record_says_stage_time_source_versions_and_figures(tmp_path):
    record = recorded(tmp_path, "tables", {})
    assert record["stage"] == "tables"
    assert record["source"] == "0123456789ab"
    assert record["versions"] == versions()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["made"])
    assert FIGURES.items() <= record.items()


def test_a_stage_that_is_run_by_hand_has_no_source(tmp_path):
    assert recorded(tmp_path, "tables", {}, source=None)["source"] is None


def test_a_file_that_is_not_there_has_no_digest(tmp_path):
    record = recorded(tmp_path, "logits", {"models": [tmp_path / "gone", tmp_path]})
    assert record["inputs"]["models"] == {str(tmp_path / "gone"): None, str(tmp_path): None}


def test_a_record_says_on_what_it_was_computed(tmp_path):
    found = recorded(tmp_path, "tables", {})["machine"]
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


# --- which options are outputs --------------------------------------------------------------------


@pytest.mark.parametrize("stage", OUTPUTS)
def test_outputs_are_options_of_the_stage(stage):
    assert set(OUTPUTS[stage]) <= {option.name for option in options_of(stage)}


# --- where records are ----------------------------------------------------------------------------


def logs_of_rules():
    """Return the logs of rules, with the name of a recipe, data set, ... as `{identity}`."""
    names = r"\{+(recipe|data|partition|plan|initial|choice|experiment|AT|PART\.name)\}+"
    for path in sorted(RULES.glob("*.smk")):
        for log in re.findall(r'\blog:\s+f?"(results/logs/[^"]+)"', path.read_text()):
            yield re.sub(names, "{identity}", log)


@pytest.mark.parametrize("log", dict.fromkeys(logs_of_rules()))
@pytest.mark.parametrize("folder", RECIPES)
def test_records_beside_the_logs_of_rules_are_found(tmp_path, log, folder):
    assert "{identity}" in log
    place = log.replace("{identity}", "some-name-0123456789").replace("{folder}", folder)
    place = re.sub(r"\{+[^}]*\}+", "x", place)
    write_record(tmp_path / place, "tables", {}, None, FIGURES)
    ((found, _),) = records_of(tmp_path, "some-name-0123456789")
    assert found == (tmp_path / place).with_suffix(".record.json")
