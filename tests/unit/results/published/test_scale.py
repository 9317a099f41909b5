from tests.shared.settings import CLIENT, federated

from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.results.published.rows import Paper, Row
from fedstage.results.published.scale import measured_at, published_at
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

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
