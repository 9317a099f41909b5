"""`fedstage verify` on the files of a real run."""

import shutil
from pathlib import Path

import pytest
import torch

from fedstage.execution.cli import main
from fedstage.execution.jobs import record_of
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    participants_table,
    updates,
)
from fedstage.storage.files import load_json, save_json
from fedstage.storage.provenance import content_digest
from fedstage.storage.tensors import load_tensors, save_tensors

AVERAGES = "fedstage.algorithm.aggregation.averages"
pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def average(small_recipe):
    """The record of an aggregation."""
    return Path(record_of(aggregation.job(small_recipe, 1, 1)))


@pytest.fixture
def verified(capsys):
    """Return what is wrong by file, and what is said at the end, in the working folder."""

    def verify():
        code = main(["verify"])
        shown = capsys.readouterr()
        lines = [line.partition(": ")[::2] for line in shown.out.splitlines()]
        wrong = {name: fault for name, fault in lines if fault}
        assert code == bool(wrong)
        return wrong, shown.err if code else shown.out

    return verify


def change(path):
    """Write other weights under the same name, as another job would."""
    weights, metadata = load_tensors(path)
    save_tensors(path, {name: torch.zeros_like(one) for name, one in weights.items()}, metadata)


def test_nothing_is_wrong_with_what_stages_wrote(verified):
    wrong, said = verified()
    assert wrong == {}
    count, _, text = said.partition(" ")
    assert int(count) > 20
    assert text == "files match their records and inputs\n"


def test_a_flipped_bit_of_every_kind_of_file(verified):
    every = [path for path in sorted(Path("results").rglob("*")) if path.is_file()]
    some = {path.suffix: path for path in every if not {"logs", "source"} & {*path.parts}}
    assert set(some) == {".safetensors", ".parquet", ".json", ".yaml"}
    for path in some.values():
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    wrong, _ = verified()
    assert f"was made from another {some.pop('.yaml')}: " in " ".join(wrong.values())
    assert {str(path) for path in some.values()} <= set(wrong)


def test_a_copy_and_what_was_made_from_the_file_in_its_place(small_recipe, verified):
    one, other = updates(small_recipe, 1, 0)[:2]
    shutil.copy(one, other)
    wrong, said = verified()
    assert "a copy in its place" in wrong.pop(other)
    assert wrong.keys() >= {aggregated_model(small_recipe, 1, 0),
                            participants_table(small_recipe, 1, 0)}  # fmt: skip
    assert all(fault.startswith(f"was made from another {other}: ") for fault in wrong.values())
    assert said.startswith(f"fedstage verify: {1 + len(wrong)} of ")
    command = said.partition("; to make these again: snakemake --cores all --force ")[2]
    assert command.split() == sorted([other, *wrong], key=command.index)


def test_another_content_under_the_same_name(small_recipe, verified):
    path = global_model(small_recipe, 1, 0)
    change(path)
    wrong, _ = verified()
    assert set(wrong) == {path}
    assert wrong[path].startswith("is not what its job wrote: ")


def test_the_latest_record_counts_also_that_of_a_segment(small_recipe, average, verified):
    path = aggregated_model(small_recipe, 1, 1)
    change(path)
    segment = load_json(average) | {"stage": "segment", "outputs": {}, "made": "2999-01-01"}
    segment["written"] = {path: content_digest(Path(path))}
    save_json(Path("results/logs/segment/s.json"), segment)
    assert path not in verified()[0]


def test_files_that_are_gone_are_no_other_files(small_recipe, verified):
    Path(updates(small_recipe, 1, 0)[0]).unlink()
    assert verified()[0] == {}


def test_a_damaged_record_is_told_and_the_others_count(small_recipe, average, verified):
    average.write_text(average.read_text()[:-9])
    wrong, said = verified()
    assert set(wrong) == {str(average)}
    assert "altered" in wrong[str(average)]
    assert said.endswith(" files and 1 records are wrong\n")
    (model := Path(global_model(small_recipe, 1, 0))).write_bytes(b"")
    assert verified()[0].keys() == {str(average), str(model)}


def test_the_file_of_the_source_that_has_changed_is_named(small_recipe, average, verified):
    record = load_json(average)
    assert record["source"][AVERAGES]
    save_json(average, record | {"source": record["source"] | {AVERAGES: "0" * 12}})
    fault = verified()[0][aggregated_model(small_recipe, 1, 1)]
    file = AVERAGES.replace(".", "/")
    assert fault == f"was made by another source: {file}.py has changed since"
