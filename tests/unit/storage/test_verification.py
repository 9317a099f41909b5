"""`fedstage verify` on the files of a real run."""

import shutil
from pathlib import Path

import pytest
import torch

from fedstage.execution.cli import main
from fedstage.plan.training import aggregated_model, global_model, participants_table, updates
from fedstage.storage.files import load_json, save_json
from fedstage.storage.provenance import content_digest
from fedstage.storage.tensors import load_tensors, save_tensors

AVERAGE = Path("results/logs/aggregation/1.record.json")


@pytest.fixture(autouse=True)
def config(small):
    Path("config.yaml").write_text("targets: [quickstart]\n")


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
    every = [path for path in Path("results").rglob("*") if path.is_file()]
    some = {path.suffix: path for path in every if "logs" not in path.parts}
    assert set(some) == {".safetensors", ".parquet", ".json", ".yaml"}
    for path in some.values():
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    wrong, _ = verified()
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


def test_the_latest_record_counts_also_that_of_a_segment(small_recipe, verified):
    path = aggregated_model(small_recipe, 1, 1)
    change(path)
    segment = load_json(AVERAGE) | {"stage": "segment", "outputs": {}, "made": "2999-01-01"}
    segment["written"] = {path: content_digest(Path(path))}
    save_json(Path("results/logs/segment/s.record.json"), segment)
    assert path not in verified()[0]


def test_files_that_are_gone_are_no_other_files(small_recipe, verified):
    Path(updates(small_recipe, 1, 0)[0]).unlink()
    assert verified()[0] == {}


def test_a_damaged_record_is_told_and_the_others_count(small_recipe, verified):
    AVERAGE.write_text(AVERAGE.read_text()[:-9])
    wrong, said = verified()
    assert set(wrong) == {str(AVERAGE)}
    assert "altered" in wrong[str(AVERAGE)]
    assert said.endswith(" files and 1 records are wrong\n")
    (model := Path(global_model(small_recipe, 1, 0))).write_bytes(b"")
    assert verified()[0].keys() == {str(AVERAGE), str(model)}


@pytest.mark.parametrize("other", ["refuse", "accept"])
def test_a_file_of_another_source_is_named_unless_it_is_accepted(small_recipe, verified, other):
    Path("config.yaml").write_text(f"targets: [quickstart]\nexecution: {{other_source: {other}}}\n")
    save_json(AVERAGE, load_json(AVERAGE) | {"source": "0" * 12})
    wrong, _ = verified()
    fault = wrong.get(aggregated_model(small_recipe, 1, 1), "was made by source 000000000000")
    assert bool(wrong) == (other == "refuse")
    assert fault.startswith("was made by source 000000000000")
