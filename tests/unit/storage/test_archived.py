from types import SimpleNamespace

import pytest

from fedstage.errors import FedstageError
from fedstage.storage.archived import LIST, archived_sources, inputs_of, recorded_sources
from fedstage.storage.files import save_json


def record(made, source, *outputs):
    return {"made": made, "source": source, "outputs": {"output": dict.fromkeys(outputs, "0")}}


def test_jobs_all_of_whose_files_are_there_count_with_their_latest_source():
    records = [
        record("2026-02", "new", "a", "b"),
        record("2026-01", "old", "a", "b"),
        record("2026-01", "half", "c", "gone"),
        record("2026-01", None, "d"),
    ]
    assert recorded_sources(records, ["a", "b", "c", "d"]) == {"a": "new", "b": "new"}


def test_a_job_reads_nothing_only_if_its_files_are_archived_there_and_of_this_source(tmp_path):
    files = {name: str(tmp_path / name) for name in ("one", "two")}
    job = SimpleNamespace(files=files, inputs={"recipe": "r"})
    sources = dict.fromkeys(files.values(), "s")
    for path in files.values():
        (tmp_path / path).touch()
    assert inputs_of(job, sources, lambda _: "s") == {}
    assert inputs_of(job, {}, lambda _: "s") == job.inputs
    assert inputs_of(job, sources, lambda _: "another") == job.inputs
    assert inputs_of(job, {files["one"]: "s"}, lambda _: "s") == job.inputs
    (tmp_path / "two").unlink()
    assert inputs_of(job, sources, lambda _: "s") == job.inputs


def test_the_list_of_an_archive_is_read_and_a_damaged_one_refused(tmp_path):
    assert archived_sources(tmp_path) == {}
    save_json(tmp_path / LIST, {"sources": {"a": "s"}})
    assert archived_sources(tmp_path) == {"a": "s"}
    save_json(tmp_path / LIST, {"sources": ["a"]})
    with pytest.raises(FedstageError, match=r"archived.json: sources = \['a'\]: must map"):
        archived_sources(tmp_path)
