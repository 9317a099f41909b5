"""How many seeds decide a claim, of results in a working folder."""

from statistics import stdev

import pytest

from fedstage.execution.cli import main
from fedstage.results.at_hand import seeds as module
from fedstage.results.claims.power import seeds_for
from fedstage.results.costs.seconds import Seconds
from fedstage.storage.files import load_json, save_json

CLAIM = {"id": "above", "text": "t", "place": "p", "experiment": "tiny"}
CLAIM |= {"greater": {"method": "fedsdd"}, "than": {"method": "fedprox"}}
#: fedsdd - fedprox at alpha 0.1, over three seeds.
DIFFERENCES = [11.0, 9.0, 10.0]


@pytest.fixture
def described(folder, monkeypatch):
    monkeypatch.chdir(folder)
    path = folder / "results/descriptions/tiny/mini.runs.json"
    content = load_json(path)
    for run in content["runs"]:
        run["published"] = {"value": 71.0 if run["settings"]["method"] == "fedsdd" else 70.0}
    save_json(path, content)
    save_json(path.with_name("mini.claims.json"), {"claims": [CLAIM]})
    return path.with_name("mini.claims.json")


def lines(capsys):
    return [line.split("  ") for line in capsys.readouterr().out.splitlines()]


def test_seeds_find_the_published_effect_and_half_of_it(described, capsys):
    assert main(["seeds", "above"]) == 0
    first = [word.strip() for word in lines(capsys)[2] if word.strip()]
    size = 1.0 / stdev(DIFFERENCES)
    needed = [str(seeds_for(size, 0.05)), str(seeds_for(size / 2, 0.05))]
    assert first == ["FedSDD − fedprox at α = 0.1", "3", "1", "+1", *needed, "–", "–"]


def test_hours_are_those_of_both_sides(described, capsys, monkeypatch):
    monkeypatch.setattr(module, "seconds_of", lambda root, parts: Seconds(1000.0, 800.0))
    assert main(["seeds", "above", "--experiment", "tiny/mini"]) == 0
    first = [word.strip() for word in lines(capsys)[2] if word.strip()]
    assert float(first[6]) == int(first[4])  # 2 x 1800 seconds for each seed
    assert float(first[7]) == pytest.approx(int(first[5]), rel=0.01)


def test_a_claim_that_is_not_there_or_twice_is_told(described, capsys):
    assert main(["seeds", "abov"]) == 1
    told = "fedstage seeds: abov: no such claim; there is above; did you mean above?"
    assert capsys.readouterr().err.startswith(told[:60])
    assert main(["seeds", "above", "--experiment", "tiny/full"]) == 1
    assert "tiny/full: no results" in capsys.readouterr().err
    for kind in ("runs", "claims"):
        content = load_json(described.with_name(f"mini.{kind}.json"))
        save_json(described.with_name(f"other.{kind}.json"), content)
    assert main(["seeds", "above"]) == 1
    told = "above: a claim on tiny/mini and tiny/other; name one, with --experiment"
    assert told in capsys.readouterr().err
