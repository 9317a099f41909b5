"""The data sets behind recipes and runs files."""

import json

import pytest
import yaml

from fedstage.storage.files import save_json
from fedstage.storage.raw_changes import data_behind

COWS, SHEEP, GOATS = ({"name": "table", "folder": name} for name in ("cows", "sheep", "goats"))


@pytest.fixture
def root(tmp_path):
    """A working folder with three data sets, a recipe that names two, and runs of the others."""
    for name, settings in {"a": COWS, "b": SHEEP, "c": GOATS}.items():
        record = {"options": {"settings": json.dumps(settings)}}
        path = tmp_path / f"results/logs/dataset/{name}.record.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_json(path, record)
    recipe = {"settings": {"data": COWS, "public": SHEEP, "rounds": [1, None]}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    save_json(tmp_path / "x.runs.json", {"runs": [{"parts": [{"local": {"data": GOATS}}]}]})
    save_json(tmp_path / "x.json", {"data": SHEEP})
    return tmp_path


def made(*names):
    return [f"results/data/{name}/info.json" for name in names]


def test_recipes_and_runs_files_name_data_sets(root):
    assert data_behind(root, ["recipe.yaml"]) == made("a", "b")
    assert data_behind(root, ["x.runs.json"]) == made("c")
    assert data_behind(root, ["recipe.yaml", "x.runs.json"]) == made("a", "b", "c")


def test_other_files_and_files_that_are_gone_name_none(root):
    assert data_behind(root, ["x.json", "gone/recipe.yaml", "gone.runs.json"]) == []


def test_public_samples_of_the_data_set_itself_are_no_other_data_set(root):
    recipe = {"settings": {"data": SHEEP, "public": {"name": "held_out"}}}
    (root / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert data_behind(root, ["recipe.yaml"]) == made("b")


def test_a_damaged_record_is_passed_over(root):
    (root / "results/logs/dataset/a.record.json").write_text("{")
    assert data_behind(root, ["recipe.yaml"]) == made("b")
