"""What `fedstage why` says of raw files, and the data sets behind recipes and runs files."""

from pathlib import Path

import pytest
import yaml

from fedstage.protocol.digests import canonical
from fedstage.settings.data import DataOption
from fedstage.storage.files import save_json
from fedstage.storage.planned import write_recipe
from fedstage.storage.raw_files import raw_of_job
from fedstage.storage.why import data_behind, raw_changes

MINE = DataOption.model_validate({"data": {"name": "parquet", "folder": "mine"}})
FILES = ["results/data/mine-0/train.safetensors", "results/data/mine-0/info.json", "results/x/y"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path):
    """A working folder with the record of a data set that was read from its folder `data`."""
    for name in ("train", "test"):
        path = tmp_path / "data" / "mine" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    record = {"stage": "dataset", **raw_of_job(MINE.data, tmp_path / "data")}
    save_json(tmp_path / "results/logs/dataset/mine-0.json", record)
    write_recipe(tmp_path / "results/data/mine-0/recipe.yaml", MINE)
    return tmp_path


def said(root, folder=None):
    """Return what became of each file, without its digests of now."""
    (one,) = raw_changes(root, FILES, folder)
    assert one.data == "mine-0"
    return {name: how.partition(", ")[2] or how for how, name in one.files}


def test_nothing_has_changed(root):
    assert said(root) == {"mine/train.parquet": "unchanged", "mine/test.parquet": "unchanged"}


def test_what_has_changed_is_named(root):
    (root / "data/mine/train.parquet").write_text("TRAIN")
    (root / "data/mine/train-1.parquet").write_text("more")
    (root / "data/mine/test.parquet").rename(root / "data/mine/test-1.parquet")
    found = said(root)
    assert found["mine/train.parquet"].startswith("was ")
    assert found["mine/train-1.parquet"] == found["mine/test-1.parquet"] == "added"
    assert found["mine/test.parquet"].startswith("was ")


@pytest.mark.parametrize(
    "content", ["", "schema: 1\n", "schema: 2\ndigest: 0\nsettings: {data: 1}\n"]
)
def test_a_damaged_recipe_is_told_in_a_line(root, content):
    recipe = root / "results/data/mine-0/recipe.yaml"
    recipe.write_text(content)
    (one,) = raw_changes(root, FILES, None)
    ((how, fault),) = one.files
    assert how == "its recipe is damaged, left out"
    assert str(recipe) in fault
    assert "\n" not in fault
    if content:  # a file of another form ends with a line of its own
        assert data_behind(root, []) == []


def test_the_folder_is_that_of_a_run(root):
    (root / "data").rename(root / "moved")
    assert said(root) == {"all 2": "so the result stays"}
    assert said(root, root / "moved")["mine/test.parquet"] == "unchanged"
    (root / "config.yaml").write_text("data_folder: moved\n")
    assert said(root, Path("nowhere"))["mine/test.parquet"] == "unchanged"


@pytest.mark.parametrize("text", ["targets: [a]\n", "a: [\n"])
def test_a_configuration_that_names_no_folder_is_passed_over(root, text):
    (root / "config.yaml").write_text(text)
    assert said(root)["mine/test.parquet"] == "unchanged"


def test_without_records_there_is_nothing_to_say(root):
    (root / "results/logs/dataset/mine-0.json").unlink()
    assert list(raw_changes(root, FILES, root / "data")) == []


# --- data sets behind files -----------------------------------------------------------------------

OPTIONS = [
    DataOption.model_validate({"data": {"name": "table", "folder": name}})
    for name in ("cows", "sheep", "goats")
]
COWS, SHEEP, GOATS = (canonical(option.data) for option in OPTIONS)


@pytest.fixture
def named(tmp_path):
    """A working folder with three data sets, a recipe that names two, and runs of the others."""
    for name, option in zip("abc", OPTIONS, strict=True):
        write_recipe(tmp_path / f"results/data/{name}/recipe.yaml", option)
    recipe = {"settings": {"data": COWS, "public": SHEEP, "rounds": [1, None]}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    save_json(tmp_path / "x.runs.json", {"runs": [{"parts": [{"local": {"data": GOATS}}]}]})
    save_json(tmp_path / "x.json", {"data": SHEEP})
    return tmp_path


def made(*names):
    return [f"results/data/{name}/info.json" for name in names]


def test_recipes_and_runs_files_name_data_sets(named):
    assert data_behind(named, ["recipe.yaml"]) == made("a", "b")
    assert data_behind(named, ["x.runs.json"]) == made("c")
    assert data_behind(named, ["recipe.yaml", "x.runs.json"]) == made("a", "b", "c")


def test_other_files_and_files_that_are_gone_name_none(named):
    assert data_behind(named, ["x.json", "gone/recipe.yaml", "gone.runs.json"]) == []


def test_public_samples_of_the_data_set_itself_are_no_other_data_set(named):
    recipe = {"settings": {"data": SHEEP, "public": {"name": "held_out"}}}
    (named / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert data_behind(named, ["recipe.yaml"]) == made("b")
