"""Files that a plan writes: only if their content has changed."""

from pathlib import Path

import pytest
from tests.shared.recipes import recipe

from fedstage.plan.source import Source, changed_files
from fedstage.plan.training_folder import FOLDER
from fedstage.storage.files import load_json, save_json
from fedstage.storage.planned import write_recipe, write_source
from fedstage.storage.raw_files import recorded
from fedstage.storage.yaml_files import read_recipe

AVERAGES = "fedstage.algorithm.aggregation.averages"


def test_a_recipe_is_written_only_if_it_has_changed(tmp_path):
    path = tmp_path / "recipe.yaml"
    for rounds in (recipe(), recipe(seed=3)):
        write_recipe(path, rounds)
        made = path.stat().st_ctime_ns
        write_recipe(path, rounds)
        assert path.stat().st_ctime_ns == made
        assert read_recipe(path, FOLDER.kind) == rounds


def test_a_source_is_written_only_if_it_has_changed_and_the_file_is_said(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedstage.storage.planned._TOLD", set())
    of, other = Source("aggregation"), Source("local_training")
    write_source(of)
    made = Path(of.file).stat().st_ctime_ns
    write_source(of)
    assert Path(of.file).stat().st_ctime_ns == made
    assert capsys.readouterr() == ("", "")
    for one in (of, other):
        save_json(one.file, one.parts() | {AVERAGES: "0" * 12})
        write_source(one)
        assert load_json(one.file) == one.parts()
    told = "fedstage: fedstage/algorithm/aggregation/averages.py has changed, which aggregation "
    assert capsys.readouterr().err == told + "reaches\n"  # once


@pytest.mark.parametrize(("then", "now"), [({"a.b": "1"}, {"a.b": "2"}), ({"a.b": "1"}, {})])
def test_changed_files_are_those_of_parts_that_differ(then, now):
    same = {"a.x": "1", "a.y": "2"}
    for pair in ((then | same, now | same), (now | same, then | same)):
        assert changed_files(*pair) == ["a/b.py"]


def test_a_record_that_touching_has_made_has_no_raw_files(tmp_path):
    (tmp_path / "a.json").touch()
    assert recorded(tmp_path / "a.json") is None
