"""What the rows of the papers' tables share, counted in jobs."""

import pytest
import yaml

pytestmark = pytest.mark.workflow


def temporal(checkpoints):
    return {"aggregated": {"checkpoints": checkpoints}}


ENSEMBLES = {
    "none": "global_model",
    "clients": "clients",
    "clients by samples": {"clients": {"weights": "samples"}},
    "Gaussian": {"bayesian": {"distribution": "gaussian"}},
    "Dirichlet": {"bayesian": {"distribution": "dirichlet"}},
}
#: FedEED, Table 1 (FedSDD, Table 5 has all but the ensemble weighted by samples).
ROWS = {
    **{f"{name}, K = 1": {"evaluate": what} for name, what in ENSEMBLES.items()},
    "none, K = 4": {"global_models": 4, "evaluate": "global_model"},
    "clients, K = 4": {"global_models": 4, "evaluate": "clients"},
    **{f"R = {r}, K = 4": {"global_models": 4, "evaluate": temporal(r)} for r in (1, 2, 4)},
}
SDD = {"local": "fedavg", "global_models": 2}


def sdd(checkpoints):
    return SDD | {"ensemble": temporal(checkpoints), "global": "designated"}


def warm(rounds):
    return SDD | {"ensemble": temporal(1), "global": {"basic": {"warm_up": rounds}}}


@pytest.fixture
def configured(project):
    """A function that makes the methods of the table the runs of the tiny experiment."""

    def configure(rows, **base):
        project.configure(**base)
        path = project.path / "config.yaml"
        config = yaml.safe_load(path.read_text())
        tiny = config["experiments"]["tiny"]
        tiny["methods"] = rows
        tiny["grid"] = {"method": list(rows)}
        path.write_text(yaml.safe_dump(config))
        return project

    return configure


def test_ten_rows_of_ensembles_train_two_recipes(configured):
    run = configured(ROWS, participants=4, rounds=3).plan()
    assert len(ROWS) == run.jobs["evaluation"] == 10
    assert len({recipe for _, _, recipe in run.trained()}) == 2
    assert run.jobs["local_training"] == 2 * 3 * 4  # recipes x rounds x participants
    assert run.jobs["aggregation"] == 3 * (1 + 4)
    assert run.jobs["distillation"] == 0
    # A round's clients, average, Gaussian and Dirichlet; the four groups' clients and averages.
    assert run.jobs["logits"] == 3 * (4 + 2 * 4)


def test_warm_up_shares_its_rounds_with_the_undistilled_recipe(configured):
    run = configured({"none": SDD, "1": warm(1), "2": warm(2)}, rounds=4).plan()
    by_recipe = {}
    for round_, _, recipe in run.trained():
        by_recipe.setdefault(recipe, []).append(round_)
    # Warm-up of W rounds has W + 1 rounds of training in common with the recipe without
    # distillation.
    assert sorted(by_recipe.values()) == [[1, 1, 2, 2, 3, 3, 4, 4], [3, 3, 4, 4], [4, 4]]
    # Both students of each round, in the last only the main model, which is evaluated.
    assert run.jobs["distillation"] == (2 + 2 + 1) + (2 + 1)


def test_one_more_ensemble_or_checkpoint_trains_nothing(copy):
    config = yaml.safe_load((copy.path / "config.yaml").read_text())
    tiny = config["experiments"]["tiny"]
    # Of the recipes that are there: fedavg with K = 1, and fedsdd's groups without distillation.
    more = {
        "gaussian": {"local": "fedavg", "evaluate": ENSEMBLES["Gaussian"]},
        "probabilities": {"local": "fedavg", "evaluate": {"clients": {"average": "probabilities"}}},
        "temporal": sdd(1) | {"evaluate": temporal(2)},
        "longer": sdd(1) | {"evaluate": temporal(4)},
    }
    tiny["methods"] |= more
    tiny["grid"]["method"] += list(more)
    (copy.path / "config.yaml").write_text(yaml.safe_dump(config))
    plan = copy.plan()
    assert plan.jobs["evaluation"] == 4
    assert plan.trained() == []
    assert plan.jobs["aggregation"] == plan.jobs["distillation"] == 0
    # Two rounds of: clients, average and drawn models; the averages of fedsdd's two groups.
    assert plan.jobs["logits"] == 2 * (3 + 2)


def test_what_the_server_teaches_trains_no_client_of_the_first_round_anew(configured, served):
    """Fed-ET's rows train round 1 once: a participant of each group for every participant."""
    like, steps = {"like": "fedet"}, {"steps": 7}
    rows = {
        "fedet": served,
        "diverse": like | {"distillation": {"fedet": {"diversity": 0.5}}},
        "longer": like | {"server": steps},
        "apart": like | {"head_sharing": False},
        "apart and longer": like | {"head_sharing": False, "server": steps},
        "feddf_server": served | {"aggregation": {"weights": "uniform"}},
    }
    trained = configured(rows).plan().trained()
    participants, groups = served["participants"], 2
    rounds = {}
    for round_, _, recipe in trained:
        rounds.setdefault(round_, []).append(recipe)
    assert len(rounds[1]) == participants * groups
    # Round 2 of the models without heads is one line's, which nothing teaches.
    assert len(rounds[2]) == participants * groups * (3 + 1 + 1)


def test_clients_that_exchange_logits_train_their_first_round_for_each_recipe(configured, served):
    """DS-FL and FedMD share participants and initial models, which the groups' numbers are of."""
    rows = {name: served | {"server_model": True} for name in ("dsfl", "fedmd")}
    alone = {"like": "dsfl", "global": None, "evaluate": "each_client"}
    run = configured(rows | {"clients of dsfl": alone}).plan()
    by_recipe = {}
    for round_, participant, recipe in run.trained():
        by_recipe.setdefault(recipe, []).append((round_, participant))
    everything = [(round_, participant) for round_ in (1, 2) for participant in range(6)]
    assert list(by_recipe.values()) == [everything] * 2
    assert run.jobs["participation"] == run.jobs["partition"] == 1
    assert run.jobs["initial_model"] == 3
    assert run.jobs["distillation"] == 2  # of DS-FL's server


CORE = {
    "model": {"resnet8": {}}, "core": {"classes": "some"}, "participants": 1, "rounds": 3,
    "server": {"steps": 4, "batch_size": 16, "learning_rate": 0.05, "augmentation": "crop"},
}  # fmt: skip


def test_a_buffer_shares_the_core_and_the_first_edge_with_none(configured):
    """KD and BKD train phase 0 and the first edge once; then each has edges of its own."""
    run = configured({name: {} for name in ("kd", "bkd", "melting")}, **CORE).plan()
    assert run.jobs["core"] == run.jobs["local_model"] == 1
    assert sorted(round_ for round_, _, _ in run.trained()) == [1, 2, 2, 2, 3, 3, 3]
    assert run.jobs["distillation"] == 3 * 3
    assert run.jobs["logits"] == 0  # teachers speak about the augmented images
