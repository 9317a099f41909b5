"""Links to runs by method and seed."""

from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.links import folder_of, link_runs, links_of
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
