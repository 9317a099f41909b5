import json
import tarfile
from types import SimpleNamespace

import pytest
from snakemake.persistence.file import FilePersistence

from fedstage.errors import FedstageError
from fedstage.execution.archive import archive
from fedstage.storage.archived import LIST
from fedstage.storage.files import save_json

LONG = "results/training/" + "x" * 240 + "/m.parquet"  # Snakemake divides the name of its note


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a model, metrics made of it, their record and notes."""
    monkeypatch.chdir(tmp_path)
    for name in ("results/training/r/model.safetensors", LONG, "results/by_method/e/s/link"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    outputs = {"output": {LONG: "0"}}
    record = {"stage": "evaluation", "made": "2026", "source": "s", "outputs": outputs}
    save_json(tmp_path / "results/logs/evaluation/r/m.record.json", record)
    return tmp_path


def note(folder, file):
    """Write Snakemake's note of a file, under the name that Snakemake gives it."""
    snakemake = SimpleNamespace(_fetch_max_len=lambda _: 255)
    path = folder / FilePersistence._record_path(snakemake, ".snakemake/metadata", file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path.relative_to(folder).as_posix()


def test_an_archive_has_everything_but_tensors_and_links(folder):
    notes = [note(folder, file) for file in (LONG, "results/training/r/model.safetensors")]
    assert "/@" in notes[0]
    assert archive(folder / "a.tar.gz").startswith("2 files, 0.0 MB, are in ")
    with tarfile.open(folder / "a.tar.gz") as packed:
        assert set(packed.getnames()) == {
            LONG, "results/logs/evaluation/r/m.record.json", notes[0], LIST,
        }  # fmt: skip
        content = json.load(packed.extractfile(LIST))
        assert packed.getmember(LONG).mtime == pytest.approx((folder / LONG).stat().st_mtime)
    assert content["sources"] == {LONG: "s"}


def test_an_archive_of_an_archive_lists_what_the_first_did(folder):
    save_json(folder / LIST, {"sources": {LONG: "old", "results/gone": "t"}})
    (folder / "results/logs/evaluation/r/m.record.json").unlink()
    archive(folder / "a.tar.gz")
    with tarfile.open(folder / "a.tar.gz") as packed:
        assert packed.getnames().count(LIST) == 1
        assert json.load(packed.extractfile(LIST))["sources"] == {LONG: "old"}


def test_other_names_and_folders_without_results_are_refused(folder, monkeypatch):
    with pytest.raises(FedstageError, match=r"-o = a.zip: must end in .tar.gz"):
        archive(folder.relative_to(folder) / "a.zip")
    monkeypatch.chdir(folder / "results")
    with pytest.raises(FedstageError, match="no such folder; call it where results is"):
        archive(folder / "a.tar.gz")
