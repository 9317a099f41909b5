"""What the paper on buffered distillation states (Section 4, appendix), beside its experiments."""

import pytest
from tests.shared.experiments import experiments

EDGES = ["bkd_one_edge", "bkd_two_edges", "bkd_stragglers", "bkd_unsynchronised", "bkd_ema"]
#: Edges, epochs, the parts of training after which the rate is divided by 10, augmentation.
STATED = {"paper": (19, 160, (80, 120), "crop_flip"), "imagenet": (149, 80, (40, 60), "flip")}


@pytest.fixture(scope="module")
def catalogue():
    return experiments()[0]


def by_method(catalogue, name, scale="paper"):
    return {run.axes["method"]: run for run in catalogue.runs[name, scale]}


@pytest.mark.parametrize(
    ("name", "scale"),
    [*((name, "paper") for name in EDGES), *((name, "imagenet") for name in EDGES[:2])],
)
def test_training_is_that_of_section_4(catalogue, name, scale):
    edges, epochs, milestones, augmentation = STATED[scale]
    for run in catalogue.runs[name, scale]:
        recipe = run.recipe
        assert (recipe.clients, recipe.partition.alpha) == (edges, 1.0)
        assert (recipe.model.name, recipe.model.shortcut) == ("resnet32", "B")
        for training in (recipe.client, recipe.server):
            assert (training.epochs, training.batch_size) == (epochs, 128)
            assert (training.learning_rate, training.momentum) == (0.1, 0.9)
            assert training.weight_decay == 0.0001
            assert training.augmentation == augmentation
            at = tuple(part * epochs for part in training.schedule.milestones)
            assert at == milestones
        assert (recipe.server.temperature, recipe.server.labels) == (2.0, 1.0)


def test_all_edges_teach_once_with_one_or_two_a_round(catalogue):
    for scale, (edges, *_) in STATED.items():
        one = by_method(catalogue, "bkd_one_edge", scale)["bkd"]
        two = by_method(catalogue, "bkd_two_edges", scale)["bkd"]
        assert (one.recipe.participants, one.length.rounds) == (1, edges)
        assert (two.recipe.participants, two.length.rounds) == (2, (edges + 1) // 2)


def test_every_second_edge_is_one_round_late(catalogue):
    for name in ("bkd_stragglers", "bkd_distance"):
        runs = by_method(catalogue, name)
        late = runs["kd" if name == "bkd_stragglers" else "kd_straggler"]
        assert late.recipe.staleness.delays == (0, 1)


def test_decays_are_those_of_section_4_1(catalogue):
    runs = by_method(catalogue, "bkd_ema")
    averages = {
        name: run.recipe.server.moving_average for name, run in runs.items() if name != "kd"
    }
    assert runs["kd"].recipe.server.moving_average is None
    assert {(one.every, one.decay) for one in averages.values()} == {
        (every, decay) for every in ("step", "round") for decay in (0.09, 0.9, 0.99)
    }


def test_the_control_has_a_row_that_trains_as_long_without_a_teacher(catalogue):
    runs = by_method(catalogue, "bkd_control")

    def epochs(run):
        return [part.recipe.client.epochs * part.length.rounds for part in run.chain()]

    start, student = runs["kd"].chain()
    assert (epochs(start), student.recipe.server.epochs) == ([160], 160)
    assert epochs(runs["core_again"]) == [160, 160]


def test_numbers_of_the_text_have_their_cells(catalogue):
    found = {}
    for name in ("bkd_first_rounds", "bkd_distance"):
        others = catalogue.published[name, "paper"].others
        for run, numbers in zip(catalogue.runs[name, "paper"], others, strict=True):
            for metric, number in numbers.items():
                found[run.axes["method"], metric] = number["value"]
    assert found == {
        ("kd", "previous"): 35.0, ("kd", "current"): 47.5,
        ("bkd", "previous"): 34.8, ("bkd", "current"): 42.7,
        ("kd", "distance"): 38.0, ("kd_straggler", "distance"): 44.0,
    }  # fmt: skip
