"""What there is to choose from."""

from pathlib import Path

import pytest

from fedstage.execution.cli import main
from fedstage.experiments import listing as module
from fedstage.experiments.listing import listing

ROOT = Path(__file__).parents[3]


def rows(kind, target=None):
    heads, recipes = listing(kind, target, ROOT / "config.yaml", ROOT / "workflow")
    return {recipe[0]: dict(zip(heads, recipe, strict=True)) for recipe in recipes}


@pytest.mark.parametrize(
    ("kind", "name", "about"),
    [
        ("models", "cnn_small", "Two convolutions and two linear layers"),
        ("data", "digits", "Handwritten digits of scikit-learn"),
        ("partitions", "dirichlet_by_client", "Hsu et al.'s scheme: each client's classes"),
        ("rules", "average", "The average of the participants' models"),
    ],
)
def test_choices_are_told_by_the_first_sentence_of_their_class(kind, name, about):
    assert rows(kind)[name]["about"].startswith(about)


@pytest.mark.parametrize("kind", [kind for kind in module.KINDS if kind != "experiments"])
def test_every_kind_is_listed_without_a_fault(kind, capsys):
    where = ["--config", str(ROOT / "config.yaml"), "--workflow", str(ROOT / "workflow")]
    assert main(["list", kind, *where]) == 0
    assert capsys.readouterr().err == ""


def test_methods_have_a_label_and_their_parts():
    listed = rows("methods")
    assert listed["feddf"]["label"] == "FedDF"
    assert listed["feddf"]["composed of"] == "local fedavg, ensemble clients, global basic"
    assert listed["fedadam"]["composed of"] == "local fedavg, server optimiser adam"
    assert listed["feddf_buffered"]["composed of"].startswith("like feddf")


def test_experiments_have_their_scales_and_runs(monkeypatch):
    names = ["quickstart", "fedsdd_table5"]

    def some(config, folder, *_):
        return module.resolve_all(config, folder, names)

    monkeypatch.setattr(module, "resolve_sound", some)
    listed = rows("experiments")
    assert set(listed) == set(names)
    assert listed["quickstart"]["runs at each scale"] == "default 36"
    assert "smoke" in listed["fedsdd_table5"]["runs at each scale"]
    assert listed["quickstart"]["title"] == "Quickstart on handwritten digits"


def test_a_target_that_is_none_is_told_in_one_line(capsys):
    where = ["--config", str(ROOT / "config.yaml"), "--workflow", str(ROOT / "workflow")]
    assert main(["list", "runs", "nothing", *where]) == 1
    assert capsys.readouterr().err == (
        "fedstage list: targets = 'nothing': unknown; see `fedstage list experiments`\n"
    )
    assert main(["list", "models", "quickstart", *where]) == 1
    assert "only runs are listed by target" in capsys.readouterr().err
