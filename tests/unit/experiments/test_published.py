import json
import shutil
from pathlib import Path

import pytest
import yaml
from tests.shared.settings import CLIENT, config, federated

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.published import measured_at, published_at
from fedstage.experiments.published_rows import Paper, Row
from fedstage.experiments.targets import results_of
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

WORKFLOW = Path(__file__).parents[3] / "workflow"
BASE = federated(
    data="cifar10", clients=10, participants=4, partition={"dirichlet": {"alpha": 0.1}}, rounds=8
)
PUBLISHED = {
    "paper": "fedsdd",
    "table": "table2",
    "where": {"dataset": "cifar10", "model": "resnet20"},
    "match": {"method": {"scaffold": None}},
}


def catalogue(folder, published=PUBLISHED, claims=(), scales=None, **changes):
    """Load an experiment, and others, beside the published numbers of the workflow."""
    others = {name: one for name, one in changes.items() if "like" in one}
    table = {key: value for key, value in changes.items() if key not in others}
    (folder / "methods.yaml").write_text((WORKFLOW / "methods.yaml").read_text())
    ignored = shutil.ignore_patterns("experiments", "claims.yaml")
    shutil.copytree(WORKFLOW / "papers", folder / "papers", ignore=ignored)
    experiment = {
        "title": "E",
        "base": BASE,
        "grid": {
            "method": ["fedavg", "fedprox", "scaffold"],
            "partition.alpha": [1.0, 0.1],
            "seed": [0, 1],
        },
        "table": {"columns": ["partition.alpha"], "published": published, **table},
        "scales": {
            "default": None,
            "mini": {"base": {"rounds": 2}, "grid": {"seed": [7]}},
            "smoke": {"base": {"data": "digits"}},
            **(scales or {}),
        },
    }
    return load_catalogue(config(e=experiment, **others) | {"claims": list(claims)}, folder)


def test_every_run_is_described_with_its_number(tmp_path):
    described = describe_runs(catalogue(tmp_path), "e", "default")
    numbers = {
        (run["settings"]["method"], run["settings"]["partition.alpha"]): run["published"]
        for run in described["runs"]
    }
    assert numbers == {
        ("fedavg", 1.0): {"value": 88.53, "std": 0.31, "seeds": 3},
        ("fedavg", 0.1): {"value": 78.72, "std": 2.31, "seeds": 3},
        ("fedprox", 1.0): {"value": 88.36, "std": 0.18, "seeds": 3},
        ("fedprox", 0.1): {"value": 79.44, "std": 2.17, "seeds": 3},
        ("scaffold", 1.0): None,
        ("scaffold", 0.1): None,
    }
    assert described["published"] == "FedSDD, Table 2"
    assert described["measured_at"].endswith(
        "8 rounds, 1 local epoch a round, 4 of 10 clients a round, 2 seeds."
    )
    assert described["published_at"].startswith(
        "Published in FedSDD, Table 2: cifar10, resnet20, 100 rounds"
    )
    json.dumps(described)


def test_where_the_data_are_others_no_published_number_stands_beside(tmp_path):
    known = catalogue(tmp_path)
    described = describe_runs(known, "e", "smoke")
    assert not {"published", "measured_at"} & described.keys()
    assert described["runs"][0]["published"]["value"] == 88.53  # for claims
    assert "results/figures/e/smoke_published.png" not in results_of(known, "e/smoke")
    assert "results/figures/e/mini_published.png" in results_of(known, "e/mini")


def test_an_experiment_inherits_the_table_and_its_published_numbers(tmp_path):
    mine = {"methods": {"mine": {"like": "fedavg"}}, "grid": {"method": ["fedavg", "mine"]}}
    known = catalogue(tmp_path, mine={"title": "M", "like": "e", **mine}, notes=["A note."])
    described = describe_runs(known, "mine", "default")
    assert (described["rows"], described["columns"]) == (["method"], [])  # no α in its grid
    assert described["notes"][-1] == "A note."
    first, added = (run["published"] for run in described["runs"])
    assert (first["value"], added) == (78.72, None)  # of the α that its base has


def test_a_table_with_rows_is_the_experiments_own_and_further_axes_are_rows(tmp_path):
    more = {"grid": {"partition.alpha": [0.1], "rounds": [1, 2]}}
    own = {**more, "table": {"rows": ["partition.alpha", "rounds"]}}
    grid = {"method": ["fedprox", "fedavg"]}
    known = catalogue(
        tmp_path,
        extends={"title": "M", "like": "e", **more, "table": {"also": ["loss"]}},
        replaces={"title": "M", "like": "e", **own},
        baseline={"title": "M", "like": "extends", "table": {"baseline": "fedavg"}, "grid": grid},
        with_it={"title": "M", "like": "baseline", "grid": grid},
        without={"title": "M", "like": "baseline", "grid": {"method": ["fedprox"]}},
    )
    table = known.experiments["extends"].table
    assert (table.rows, table.columns) == (["method", "rounds"], ["partition.alpha"])
    assert table.also == ["loss"]
    assert known.experiments["replaces"].table.published is None
    assert known.experiments["with_it"].table.baseline == "fedavg"
    assert known.experiments["without"].table.baseline is None
    differences = "results/figures/with_it/default_differences.png"
    assert differences in results_of(known, "with_it")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"paper": "fedx"},
            "e: table.published.paper = 'fedx': use one of aggregated_ensembles, bkd, fedeed",
        ),
        ({"table": "t"}, "e/default: table.published.table = 't': use one of table2"),
        ({"axes": {"rounds": "rounds"}}, "e: table.published.axes: 'rounds': must be one of"),
        ({"match": {"metod": {}}}, "e: table.published.match: 'metod': must be one of method"),
        (
            {"where": {"model": "resnet21"}},
            "e: table.published: no cell has a row of fedsdd, table2; the first one needs a row "
            "with model = resnet21, method = fedavg, partition_alpha = 1",
        ),
        ({"pages": 3}, "table.published.pages = 3: unknown key"),
        ({"match": {"method": {"fedavg": 3}}}, "table.published.match.method.fedavg = 3: must be"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_one_line(tmp_path, changes, told):
    with pytest.raises(FedstageError) as caught:
        catalogue(tmp_path, published=PUBLISHED | changes)
    message = str(caught.value)
    assert told in message
    assert "\n" not in message


def test_papers_that_are_not_described_are_told(tmp_path):
    (tmp_path / "papers/fedsdd").mkdir(parents=True)
    (tmp_path / "papers/fedsdd/paper.yaml").write_text(yaml.safe_dump({"label": "x"}))
    (tmp_path / "methods.yaml").write_text((WORKFLOW / "methods.yaml").read_text())
    experiment = {
        "title": "E",
        "base": BASE,
        "table": {"published": {"paper": "fedsdd", "table": "table2"}},
        "scales": {"default": None},
    }
    with pytest.raises(FedstageError, match=r"fedsdd/paper\.yaml: title: missing"):
        load_catalogue(config(e=experiment), tmp_path)


# --- scale ----------------------------------------------------------------------------------------


PAPER = Paper(label="FedSDD", title="A title", scale="100 rounds")


def run(rounds=8, seed=0, local=False, **changes):
    settings = federated(
        data={"digits": {"test": 200}}, clients=10, participants=4, client=CLIENT | {"epochs": 2}
    )
    recipe = Recipe.model_validate(settings | {"seed": seed} | changes)
    trained = alone(recipe, rounds, pooled=True) if local else recipe
    return Run({"method": "fedavg", "seed": seed}, trained, RunLength(rounds=rounds))


def row(**keys):
    return Row("table2", "top1_accuracy", keys, 50.0, 1.0, 3)


def test_what_differs_is_listed():
    steps = {"steps": 1, "batch_size": 16, "learning_rate": 0.05}
    runs = [run(), run(1, data="cifar10", participants=8), run(participants=10, client=steps)]
    assert measured_at("mini", runs) == (
        "Measured at scale `mini`: digits (test 200) and cifar10, cnn_small, 8 and 1 rounds, "
        "2 local epochs and 1 local step a round, 4, 8 and 10 of 10 clients a round, 1 seed."
    )


def test_published_scale_is_the_papers_and_the_rows():
    rows = [
        row(dataset="cifar10", model="resnet20", clients="8"),
        None,
        row(dataset="cifar100", model="resnet20", clients="14", K="7"),
    ]
    assert published_at("FedSDD, Table 9", PAPER, rows) == (
        "Published in FedSDD, Table 9: cifar10 and cifar100, resnet20, 100 rounds, "
        "by row clients = 8 and 14, 3 seeds. A title."
    )
