"""Links to runs by method and seed."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.links import folder_of, link_runs, linked, links_of
from fedstage.results.at_hand.names import run_name
from fedstage.storage.yaml_files import load_yaml

WORKFLOW = Path(__file__).parents[3] / "workflow"
KEY = ("quickstart", "default")


@pytest.fixture(scope="module")
def known():
    config = load_yaml(WORKFLOW.parent / "config.yaml")
    grid = {"method": ["fedavg", "fedsdd", "local_only"], "seed": [0, 1]}
    grid |= {"partition.alpha": [0.1, 1.0]}
    config["experiments"]["quickstart"]["grid"] = grid
    config["experiments"]["quickstart"]["table"] = {"columns": ["partition.alpha"]}
    return load_catalogue(config | {"targets": ["quickstart"]}, WORKFLOW, "")


def make(known, root):
    for run in known.runs[KEY]:
        (root / folder_of(run)).mkdir(parents=True, exist_ok=True)
    link_runs(known, [KEY], root)


def links(root):
    found = (path for path in (root / "results/by_method").rglob("*") if path.is_symlink())
    return {str(path.relative_to(root / "results/by_method")): path for path in found}


def test_each_run_has_one_name_that_says_all_axes(known):
    names = links_of(known.runs[KEY])
    assert len(names) == len(known.runs[KEY]) == 12
    assert "fedavg/partition.alpha=0.1/seed_0" in names
    assert "fedavg/partition.alpha=1.0/seed_0" in names
    assert len(set(names.values())) == 12


def test_without_further_axes_names_are_method_and_seed(known):
    runs = [replace(run, axes={"method": run.axes["method"], "seed": 0}) for run in known.runs[KEY]]
    assert set(links_of(runs)) == {"fedavg/seed_0", "fedsdd/seed_0", "local_only/seed_0"}


def test_values_with_slashes_and_spaces_stay_apart(known):
    run = known.runs[KEY][0]
    values = ["a b", "a+b", "a/b", "a,b"]
    runs = [replace(run, axes=run.axes | {"data": value}) for value in values]
    names = links_of(runs)
    assert len(names) == len(values)
    assert {name.count("/") for name in names} == {2}


def test_links_are_relative_and_lead_to_the_runs(known, tmp_path):
    make(known, tmp_path)
    found = links(tmp_path)
    assert len(found) == 12
    for name, folder in links_of(known.runs[KEY]).items():
        link = found[f"quickstart/default/{name}"]
        assert not link.readlink().is_absolute()
        assert link.resolve() == tmp_path / folder


def test_links_that_are_wrong_or_stale_are_replaced(known, tmp_path):
    make(known, tmp_path)
    before = links(tmp_path)
    wrong = before["quickstart/default/fedavg/partition.alpha=0.1/seed_0"]
    right = wrong.readlink()
    wrong.unlink()
    wrong.symlink_to("elsewhere")
    stale = tmp_path / "results/by_method/quickstart/default/feddf/seed_0"
    stale.parent.mkdir()
    stale.symlink_to("elsewhere")
    own = tmp_path / "results/by_method/quickstart/default/notes.txt"
    own.write_text("mine")
    make(known, tmp_path)
    assert wrong.readlink() == right
    assert not stale.parent.exists()
    assert own.read_text() == "mine"
    assert set(links(tmp_path)) == set(before)


def test_a_run_of_which_nothing_is_made_has_no_link(known, tmp_path):
    link_runs(known, [KEY], tmp_path)
    assert links(tmp_path) == {}


def test_a_file_in_the_way_is_told_in_one_line(known, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/by_method").write_text("")
    with pytest.raises(FedstageError, match=r"seed_0: cannot be linked to .*\(Not a directory\)$"):
        make(known, tmp_path)


def test_tables_name_experiments_and_scales():
    tables = ["results/tables/a/default.md", "results/claims/a/default.md", "results/tables/b/c.md"]
    assert linked(tables) == [("a", "default"), ("b", "c")]


@pytest.mark.parametrize("method", [".", "..", "...", "a/../b"])
def test_no_name_of_a_method_leads_out_of_its_folder(method):
    name = run_name({"method": method, "seed": 0})
    assert Path("results", name).resolve() == Path("results").resolve() / name
