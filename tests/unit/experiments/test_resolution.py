from itertools import product

import pytest
import yaml
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.experiments.library import load_experiments
from fedstage.experiments.resolution import resolve
from fedstage.plan import one_shot as shot
from fedstage.plan.training import global_model
from fedstage.plan.training_folder import training_id
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.validation import validate

BASE = federated(
    clients=10,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=4,
    rounds=8,
    server={"steps": 20, "batch_size": 16, "learning_rate": 0.01},
)
LIBRARY = {
    "fedavg": {"local": "fedavg"},
    "fedprox": {"local": {"fedprox": {"mu": 0.001}}},
    "feddf": {"ensemble": "clients", "global": "basic"},
    "local_only": {"training": "alone"},
    "centralised": {"training": "pooled"},
    "fens": {
        "training": "one_shot",
        "rounds": 1,
        "aggregator": "mlp",
        "aggregator_training": {"federated": {"rounds": 5}},
    },
}


def experiment(base=None, scales=None, **changes):
    axes = [axis for axis in changes.get("grid", ()) if axis not in ("method", "seed")]
    raw = {
        "title": "A",
        "table": {"rows": ["method"], "columns": axes},
        "base": {**BASE, **(base or {})},
        "scales": {"default": None} if scales is None else scales,
        **changes,
    }
    return validate(Experiment, raw, "here")


def runs(scale="default", library=LIBRARY, **changes):
    return resolve("a", experiment(**changes), scale, library)


# --- grids ----------------------------------------------------------------------------------------


def test_grid_is_every_combination_in_order():
    grid = {"method": ["fedavg", "feddf"], "partition.alpha": [1.0, 0.1], "seed": [1, 0]}
    found = [tuple(run.axes[axis] for axis in grid) for run in runs(grid=grid)]
    assert found == list(product(*grid.values()))
    for run, (method, alpha, seed) in zip(runs(grid=grid), found, strict=True):
        assert (run.recipe.global_trainer is not None) == (method == "feddf")
        assert (run.recipe.partition.alpha, run.recipe.seed) == (alpha, seed)


def test_axes_are_settings_at_dotted_paths():
    grid = {"client.schedule": ["constant", "cosine"], "evaluate_every": [1, 2], "rounds": [3]}
    found = runs(grid=grid)
    assert [run.recipe.client.schedule.name for run in found] == ["constant"] * 2 + ["cosine"] * 2
    assert [run.length.evaluate_every for run in found] == [1, 2, 1, 2]
    assert {run.length.rounds for run in found} == {3}


def test_settings_are_laid_over_one_another_base_scale_method_grid_point():
    def mu(**changes):
        library = {"fedprox": {"local": {"fedprox": {"mu": 0.3}}}}
        (run,) = runs(library=library, **changes)
        return run.recipe.local.mu

    base = {"local": {"fedprox": {"mu": 0.1}}, "method": "fedprox"}
    library_without = {"fedprox": {}}
    assert runs(base=base, library=library_without)[0].recipe.local.mu == 0.1
    scales = {"default": {"base": {"local": {"fedprox": {"mu": 0.2}}}}}
    assert runs(base=base, scales=scales, library=library_without)[0].recipe.local.mu == 0.2
    assert mu(base=base, scales=scales) == 0.3
    assert mu(base=base, scales=scales, grid={"local.mu": [0.4]}) == 0.4


@pytest.mark.parametrize(
    "axis",
    [
        {"partition": ["iid", {"dirichlet": {"alpha": 1.0, "min_samples": 2}}]},
        {"client.clip_norm": [None, 1.0]},
        {"client.schedule": ["constant", {"step": {"milestones": [0.5, 0.75]}}]},
        {"client.nesterov": [False]},
        {"data": [{"digits": None}]},
    ],
    ids=str,
)
def test_values_of_axes_are_plain_so_that_tables_can_take_them(axis):
    (name,) = axis
    labels = [run.axes[name] for run in runs(grid=axis)]
    assert all(label is None or isinstance(label, str | int | float) for label in labels)
    assert len(set(labels)) == len(labels)


def test_values_of_axes_may_have_names():
    half = {"parquet": {"folder": "cifar10", "train_size": 25000}}
    found = runs(
        grid={"data": {"half": half, "digits": "digits"}, "seed": [0, 1]},
        implies={"data": {"half": {"public": "cifar100"}, "digits": {"public": "held_out"}}},
        scales={
            "default": {
                "cells": [
                    {"at": {"data": "half"}, "settings": {"server": {"steps": 7}}},
                    {"at": {"data": "parquet"}, "settings": {"client": {"epochs": 3}}},
                ]
            }
        },
    )
    assert [run.axes["data"] for run in found] == ["half", "half", "digits", "digits"]
    assert [run.recipe.data.name for run in found[1:3]] == ["parquet", "digits"]
    assert [run.recipe.public.name for run in found[1:3]] == ["cifar100", "held_out"]
    assert [run.recipe.server.steps for run in found[1:3]] == [7, 20]
    assert [run.recipe.client.epochs for run in found[1:3]] == [3, 1]
    unnamed = runs(grid={"data": [half], "seed": [0]}, base={"public": "cifar100"})
    assert unnamed[0].axes["data"] == "parquet folder cifar10 train_size 25000"
    # What comes with a choice comes with it under any name.
    implied = {"data": {"parquet": {"public": "cifar100"}}}
    (named,) = runs(grid={"data": {"half": half}}, implies=implied)
    assert named.recipe == unnamed[0].recipe


# --- scales ---------------------------------------------------------------------------------------


def test_scale_changes_the_base_and_replaces_axes():
    scales = {
        "full": None,
        "mini": {"base": {"rounds": 2, "client": {"epochs": 3}}, "grid": {"seed": [7]}},
    }
    definition = experiment(grid={"seed": [0, 1], "participants": [3, 4]}, scales=scales)
    full = resolve("a", definition, "full", LIBRARY)
    mini = resolve("a", definition, "mini", LIBRARY)
    assert [run.axes["seed"] for run in full] == [0, 0, 1, 1]
    assert [(run.axes["seed"], run.axes["participants"]) for run in mini] == [(7, 3), (7, 4)]
    assert {(run.length.rounds, run.recipe.client.epochs) for run in full} == {(8, 1)}
    assert {(run.length.rounds, run.recipe.client.epochs) for run in mini} == {(2, 3)}
    assert {run.recipe.client.batch_size for run in mini} == {16}


# --- methods --------------------------------------------------------------------------------------


def test_an_experiment_changes_a_method_of_the_library_for_itself():
    methods = {"feddf": {"global": {"basic": {"warm_up": 3}}}}
    (run,) = runs(grid={"method": ["feddf"]}, methods=methods)
    assert run.recipe.global_trainer.warm_up == 3
    assert run.recipe.ensemble.name == "clients"
    assert LIBRARY["feddf"]["global"] == "basic"


# --- experiments like another one -----------------------------------------------------------------


NINE = {"method": ["fedavg", "fens", "local_only"], "seed": [3, 1, 2]}
FRACTION = {"aggregator_fraction": 0.2}


def test_runs_of_other_seeds_are_those_of_the_seed_alone():
    together = runs(base=FRACTION, grid=NINE)
    alone = [
        run
        for method in NINE["method"]
        for seed in NINE["seed"]
        for run in runs(base=FRACTION, grid={"method": [method], "seed": [seed]})
    ]
    assert together == alone
    assert [run.recipe.seed for run in together] == NINE["seed"] * 3


def family(tmp_path, **children):
    """Load experiment `a` of the configuration and the given files."""
    (tmp_path / "experiments").mkdir(exist_ok=True)
    for name, content in children.items():
        text = yaml.safe_dump({"title": name, "scales": {"default": None}, **content})
        (tmp_path / f"experiments/{name}.yaml").write_text(text)
    methods = {"fedprox": {"local": {"fedprox": {"mu": 0.5}}}, "own": {"local": "fedavg"}}
    config = Config(targets=["a"], experiments={"a": experiment(methods=methods)})
    return load_experiments(config, tmp_path)


def test_experiment_starts_from_base_and_methods_of_the_one_that_it_is_like(tmp_path):
    changes = {
        "like": "a",
        "base": {"rounds": 3, "partition": {"dirichlet": {"alpha": 5.0}}},
        "methods": {"fedprox": {"aggregation": {"weights": "uniform"}}},
        "grid": {"method": ["fedprox", "own"]},
    }
    child = family(tmp_path, b=changes)["b"]
    prox, own = resolve("b", child, "default", LIBRARY)
    assert (prox.recipe.local.mu, prox.recipe.aggregation.weights) == (0.5, "uniform")
    assert own.recipe.aggregation.weights == "samples"
    assert {run.length.rounds for run in (prox, own)} == {3}
    assert {run.recipe.partition.alpha for run in (prox, own)} == {5.0}
    assert {run.recipe.clients for run in (prox, own)} == {10}


# --- federated or not -----------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "pooled"), [("local_only", False), ("centralised", True)])
def test_unfederated_methods_become_local_recipes_of_the_whole_length(method, pooled):
    (run,) = runs(grid={"method": [method]})
    assert isinstance(run.recipe, LocalRecipe)
    assert run.recipe.pooled == pooled
    assert run.recipe.client.epochs == 8
    assert run.length.rounds == 8


# --- files ----------------------------------------------------------------------------------------


def test_experiments_of_config_and_folders_are_read(tmp_path):
    for folder, name in (("papers/p/experiments", "b"), ("experiments", "c")):
        content = {"title": name, "base": BASE, "scales": {"default": None}}
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        (tmp_path / folder / "notes.txt").write_text("none")
    config = Config(targets=["a"], experiments={"a": experiment()})
    found = load_experiments(config, tmp_path)
    assert {name: content.title for name, content in found.items()} == {
        "a": "A",
        "b": "b",
        "c": "c",
    }
    assert list(config.experiments) == ["a"]


def test_a_scale_starts_from_the_scale_of_the_same_name(tmp_path):
    scales = {
        "smoke": {
            "base": {"rounds": 2},
            "methods": {"feddf": {"rounds": 1}},
            "grid": {"seed": [5]},
        },
        "unused": None,
    }
    parent = {"scales": scales}
    child = {"like": "parent", "scales": {"smoke": {"base": {"participants": 3}}, "own": None}}
    found = family(tmp_path, parent=parent, b=child)["b"]
    assert set(found.scales) == {"smoke", "own"}
    assert found.scales["smoke"].base == {"rounds": 2, "participants": 3}
    assert found.scales["smoke"].methods == {"feddf": {"rounds": 1}}
    assert found.scales["smoke"].grid == {}  # of axes, each experiment has its own
    assert found.scales["own"].base == {}


# --- methods of a scale, and what values imply ----------------------------------------------------


def test_a_scale_can_change_methods():
    scales = {"default": None, "small": {"methods": {"fedprox": {"local": {"mu": 0.5}}}}}
    changes = {"grid": {"method": ["fedprox", "fedavg"]}, "scales": scales}
    assert runs(**changes)[0].recipe.local.mu == 0.001
    changed, other = runs("small", **changes)
    assert changed.recipe.local.mu == 0.5
    assert other.recipe.local.name == "fedavg"


def test_a_value_of_an_axis_can_imply_settings():
    grid = {"data": ["digits", "cifar10", {"cifar100": {"train_size": 500}}], "seed": [0]}
    implies = {"data": {"cifar10": {"public": "svhn"}, "cifar100": {"public": "cifar10"}}}
    method = {"fedavg": {"ensemble": "clients", "global": "basic"}}
    found = [run.recipe.public.name for run in runs(grid=grid, implies=implies, library=method)]
    assert found == ["held_out", "svhn", "cifar10"]


def test_settings_of_a_value_are_implied_by_the_first_of_them():
    grid = {"client": [{"epochs": 2}, {"learning_rate": 0.2}], "seed": [0]}
    implies = {"client": {"learning_rate": {"participants": 3}}}
    assert [run.recipe.participants for run in runs(grid=grid, implies=implies)] == [4, 3]


def at_cells(*cells):
    found = [{"at": at, "settings": {"client": {"learning_rate": rate}}} for at, rate in cells]
    return {"default": {"cells": found}}


def rates(**changes):
    return [run.recipe.client.learning_rate for run in runs(**changes)]


METHODS_AND_ALPHAS = {"method": ["fedavg", "fedprox"], "partition.alpha": [1.0, 0.1]}


def test_later_cells_are_above_earlier_ones_and_all_above_methods_and_what_axes_imply():
    grid = {**METHODS_AND_ALPHAS, "partition.alpha": [0.1]}
    changes = {
        "methods": {"fedavg": {"client": {"learning_rate": 0.7}}},
        "implies": {"partition.alpha": {0.1: {"client": {"learning_rate": 0.8}}}},
        "grid": grid,
    }
    assert rates(**changes) == [0.8, 0.8]
    cells = at_cells(({"partition.alpha": 0.1}, 0.2), ({"method": "fedavg"}, 0.4))
    assert rates(scales=cells, **changes) == [0.4, 0.2]
    grid["client.learning_rate"] = [0.6]
    assert rates(scales=cells, **changes) == [0.6, 0.6]


def test_settings_of_cells_are_inherited_and_may_be_of_those_who_inherit_them(tmp_path):
    cells = at_cells(({"method": "fedprox"}, 0.3), ({"method": "fedavg"}, 0.2))
    parent = {"grid": {"method": ["fedavg"]}, "scales": cells}
    own = at_cells(({"method": "fedprox"}, 0.4))
    children = {
        "b": {"like": "parent", "grid": {"method": ["fedavg"]}},
        "c": {"like": "parent", "grid": {"method": ["fedprox"]}, "scales": own},
    }
    found = family(tmp_path, parent=parent, **children)
    rates = [
        cell.settings["client"]["learning_rate"] for cell in found["c"].scales["default"].cells
    ]
    assert rates == [0.3, 0.2, 0.4]
    (tmp_path / "experiments/c.yaml").unlink()
    del children["c"]
    with pytest.raises(
        FedstageError,
        match=r"parent/default: cells\.0\.at: method = 'fedprox': no cell of parent; use one of",
    ):
        family(tmp_path, parent=parent, **children)


# --- one-shot runs --------------------------------------------------------------------------------


def test_a_base_may_hold_settings_of_one_shot_and_federated_runs():
    base = {"aggregator_fraction": 0.1, "initialisation": "own", "global_models": 2}
    federated, one_shot, alone = runs(
        base=base, grid={"method": ["fedavg", "fens", "local_only"]}, table={}
    )
    assert isinstance(federated.recipe, Recipe)
    assert (federated.recipe.global_models, federated.recipe.clients) == (2, 10)
    assert isinstance(one_shot.recipe, OneShotRecipe)
    assert (one_shot.recipe.aggregator.name, one_shot.recipe.initialisation) == ("mlp", "own")
    assert one_shot.length.rounds == 1
    assert isinstance(alone.recipe, LocalRecipe)
    assert (alone.recipe.aggregator_fraction, alone.recipe.initialisation) == (0.1, "own")


# --- choices --------------------------------------------------------------------------------------


def chosen(among, **changes):
    library = LIBRARY | {"tuned": {"choose": {"among": among}, **changes}}
    (run,) = runs(library=library, base={"validation": 0.1}, grid={"method": ["tuned"]})
    return run


def test_a_run_that_chooses_has_a_candidate_for_every_combination():
    run = chosen({"client.epochs": [1, 4], "client.learning_rate": [0.1, 0.2, 1e-3]})
    values = [(one.recipe.client.epochs, one.recipe.client.learning_rate) for one in run.candidates]
    assert values == list(product((1, 4), (0.1, 0.2, 0.001)))
    assert run.candidates[1].axes == {"client.epochs": 1, "client.learning_rate": 0.2}
    assert (run.recipe, run.axes["method"]) == (run.candidates[0].recipe, "tuned")
    assert not any(one.candidates for one in run.candidates)


def test_candidates_are_scored_on_validation_and_on_what_is_asked_for():
    run = chosen({"client.epochs": [1, 4]})
    assert [(one.length.role, one.recipe.client.epochs) for one in run.evaluated()] == [
        ("validation", 1), ("validation", 4), ("test", 1), ("test", 4),
    ]  # fmt: skip
    validated = chosen({"client.epochs": [1, 4]}, role="validation")
    assert [one.length.role for one in validated.evaluated()] == ["validation"] * 2
    (plain,) = runs()
    assert plain.evaluated() == [plain]


def compared(**settings):
    choose = {"among": {"client.epochs": [1, 4]}, "compare_with": settings}
    library = LIBRARY | {"tuned": {"choose": choose}}
    (run,) = runs(library=library, grid={"method": ["tuned"]})
    return run


def test_candidates_may_be_compared_with_other_settings_than_they_are_taken_with():
    run = compared(validation=0.2)
    assert [one.recipe.validation for one in run.candidates] == [0.0, 0.0]
    assert [one.recipe.validation for one in run.compared] == [0.2, 0.2]
    assert [one.length.role for one in run.compared] == ["validation", "validation"]
    assert [one.recipe.client.epochs for one in run.compared] == [1, 4]
    assert run.evaluated() == [*run.compared, *run.candidates]
    assert len({training_id(one.recipe) for one in run.trained()}) == 4


# --- runs that go on from others ------------------------------------------------------------------

KD = {"training": "one_shot", "rounds": 1, "aggregator": "weighted", "distillation": "l1"}
FOLLOWING = LIBRARY | {
    "kd": KD,
    "kd_first": {"like": "fedavg", "rounds": 3, "start": "kd"},
    "kd_last": {"like": "kd", "start": {"method": "fedavg", "rounds": 3}},
    "twice": {"like": "fedavg", "rounds": 2, "start": "kd_last"},
}


def following(*names, **changes):
    return runs(library=FOLLOWING, grid={"method": list(names), **changes})


def test_settings_of_one_part_do_not_reach_the_next():
    """The base is of one shot; federated rounds have those of their own method and its cells."""
    methods = {"fedavg": {"client": {"epochs": 2, "learning_rate": 0.1}}}
    tuned = [{"at": {"method": "fedavg"}, "settings": {"client": {"learning_rate": 0.3}}}]
    grid = {"method": ["kd_first", "kd_last"]}
    scales = {"default": {"methods": methods, "cells": tuned}}
    first, last = runs(library=FOLLOWING, grid=grid, scales=scales)
    for part in (first, last.before):
        assert (part.recipe.client.epochs, part.recipe.client.learning_rate) == (2, 0.3)
        assert part.length.rounds == 3
    for part in (first.before, last):
        assert part.recipe.client == following("kd")[0].recipe.client
    assert first.before.recipe == following("kd")[0].recipe


# --- methods that are like others -----------------------------------------------------------------


def test_a_method_that_is_like_another_has_its_settings_and_no_label():
    library = LIBRARY | {
        "one": {"label": "One", "local": {"fedprox": {"mu": 0.1}}, "client": {"epochs": 4}},
        "two": {"like": "one", "client": {"learning_rate": 0.3}},
        "three": {"like": "two", "local": "fedavg"},
    }
    one, two, three = runs(library=library, grid={"method": ["one", "two", "three"]})
    assert two.recipe.local == one.recipe.local
    assert (two.recipe.client.epochs, two.recipe.client.learning_rate) == (4, 0.3)
    assert three.recipe.local.name == "fedavg"
    assert three.recipe.client == two.recipe.client
    assert (one.style.label, two.style.label) == ("One", None)


def test_settings_of_the_experiment_reach_methods_that_are_like_another():
    library = LIBRARY | {"two": {"like": "fedavg", "rounds": 2}}
    scales = {
        "default": {
            "methods": {"fedavg": {"client": {"epochs": 4}}},
            "cells": [
                {"at": {"method": "fedavg"}, "settings": {"rounds": 7, "participants": 3}},
                {"at": {"method": "two"}, "settings": {"client": {"learning_rate": 0.4}}},
            ],
        }
    }
    fedavg, two = runs(library=library, grid={"method": ["fedavg", "two"]}, scales=scales)
    assert two.recipe.client.epochs == fedavg.recipe.client.epochs == 4
    assert (fedavg.length.rounds, two.length.rounds) == (7, 2)
    assert two.recipe.participants == fedavg.recipe.participants == 3
    assert two.recipe.client.learning_rate == 0.4 != fedavg.recipe.client.learning_rate


# --- parts of a chain -----------------------------------------------------------------------------


def test_a_run_that_starts_from_a_student_shares_all_of_it():
    alone, after = following("kd", "kd_first")
    assert after.before.recipe == alone.recipe
    assert after.recipe.start == shot.student_file(alone.recipe)
    assert global_model(after.recipe, 0, 0) == after.recipe.start
    assert [one.length.rounds for one in after.chain()] == [1, 3]


# --- models that nobody trains --------------------------------------------------------------------

SERVED = {"global_models": 3, "server_model": True}
HEADS = SERVED | {"model": {"cnn_small": {"head": {}}}, "head_sharing": True}
DIGEST = {"local": "digest", "ensemble": "clients"}


GKT = SERVED | {
    "local": "gkt", "model": "resnet_upper", "client_groups": "drawn",
    "architectures": ["resnet_upper", "resnet_lower", "resnet_lower"],
}  # fmt: skip


def scored(settings, evaluate):
    library = {"fedavg": settings}
    (run,) = runs(library=library, base={"evaluate": evaluate})
    return run.length.evaluate.name


@pytest.mark.parametrize(
    ("settings", "evaluate"),
    [
        (SERVED | {"ensemble": "clients", "global": "designated"}, "global_model"),
        (HEADS, "global_model"),
        (SERVED, "clients"),
        (SERVED, "each_client"),
        (SERVED, "aggregated"),
        (DIGEST, "clients"),
        (DIGEST, "each_client"),
        (GKT, "split_model"),
        (GKT, "each_client"),
        (GKT, "clients"),
        (DIGEST | SERVED | {"client_groups": "drawn", "global": "designated"}, "global_model"),
    ],
)
def test_models_that_somebody_trains_are_scored(settings, evaluate):
    assert scored(settings, evaluate) == evaluate


@pytest.mark.parametrize(
    ("settings", "evaluate", "told"),
    [
        (SERVED, "global_model", "nobody trains the main model"),
        (DIGEST, "global_model", "nobody trains the main model"),
        (DIGEST, "aggregated", "nothing is averaged with local = digest"),
        (DIGEST, "bayesian", "nothing is averaged with local = digest"),
        (GKT, "global_model", "nobody trains the main model"),
        (GKT, "aggregated", "nothing is averaged with local = gkt"),
        (SERVED, "split_model", "only with local = gkt, whose clients send features"),
    ],
)
def test_models_that_nobody_trains_are_not_scored(settings, evaluate, told):
    with pytest.raises(FedstageError, match=f"evaluate = {evaluate!r}: {told}"):
        scored(settings, evaluate)


def test_a_run_does_not_start_from_a_model_that_nobody_trained():
    library = LIBRARY | {"fedmd": {**DIGEST, "evaluate": "each_client"}}
    with pytest.raises(FedstageError, match="start fedmd: evaluate = 'global_model': nobody"):
        runs(library=library, base={"start": "fedmd"})
