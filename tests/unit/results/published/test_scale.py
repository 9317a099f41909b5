from measured import FEDERATED

from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.results.published.rows import Paper, Row
from fedstage.results.published.scale import measured_at, name_source, published_at
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Published

PAPER = Paper(label="FedSDD", title="A title", scale="100 rounds")


def run(rounds=8, seed=0, local=False, **changes):
    client = FEDERATED["client"] | {"epochs": 2}
    settings = FEDERATED | {"data": {"digits": {"test": 200}}, "clients": 10, "client": client}
    recipe = Recipe.model_validate(settings | {"seed": seed} | changes)
    trained = alone(recipe, rounds, pooled=True) if local else recipe
    return Run({"method": "fedavg", "seed": seed}, trained, RunLength(rounds=rounds))


def row(**keys):
    return Row("table2", "top1_accuracy", keys, 50.0, 1.0, 3)


def test_measured_at_one_scale():
    assert measured_at("mini", [run(), run(seed=1)]) == (
        "Measured at scale `mini`: digits (test 200), cnn_small, 8 rounds, 2 local epochs a round, "
        "4 of 10 clients a round, 2 seeds."
    )


def test_what_differs_is_listed():
    steps = {"steps": 1, "batch_size": 16, "learning_rate": 0.05}
    runs = [run(), run(1, data="cifar10", participants=8), run(participants=10, client=steps)]
    assert measured_at("mini", runs) == (
        "Measured at scale `mini`: digits (test 200) and cifar10, cnn_small, 8 and 1 rounds, "
        "2 local epochs and 1 local step a round, 4, 8 and 10 of 10 clients a round, 1 seed."
    )


def test_training_without_federation_has_no_participants():
    assert measured_at("mini", [run(local=True)]) == (
        "Measured at scale `mini`: digits (test 200), cnn_small, 8 rounds, 1 seed."
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


def test_where_nothing_is_stated_nothing_is_said():
    rows = [Row("table3", "seconds", {}, 1.0, None, None)]
    assert published_at("X", PAPER, rows) == "Published in X: 100 rounds. A title."


def test_places_are_named_as_in_papers():
    places = {
        "table2": "Table 2",
        "text_sec4.1": "text sec4.1",
        "figure3_caption": "Figure 3 caption",
    }
    for table, place in places.items():
        published = Published(paper="fedsdd", table=table)
        assert name_source(PAPER, published) == f"FedSDD, {place}"
