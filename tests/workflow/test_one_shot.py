"""One-shot federated learning: what its methods share, counted in jobs, and a real run."""

import shutil
from dataclasses import replace
from importlib.util import find_spec

import pytest
import yaml

from fedstage.execution.cli import main
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

CLIENTS = 4
#: On the models of FENS: the library's FedENS, FedKD and Fed-ET train on all samples.
ONE_SHOT = {"training": "one_shot", "rounds": 1, "local_fraction": None}
ROUNDS = {"federated": {"rounds": 6, "batch_size": 8, "learning_rate": 0.1}}
RULES = {
    "averaging": "averaging",
    "weighted": "weighted",
    "linear": "linear",
    "per_class": "per_class",
    "mlp": {"mlp": {"hidden": 5}},
    "voting": "voting",
    "moe": {"moe": {"kernel": 3, "padding": 1, "channels": [2, 2], "hidden": [4, 4]}},
}


def rule(name, **changes):
    return ONE_SHOT | {"aggregator": RULES[name], "aggregator_training": ROUNDS} | changes


SEVEN = {name: rule(name) for name in RULES}


def write(project, rows, **base):
    """Make the methods of a table the runs of the tiny experiment."""
    project.configure(**{"aggregator_fraction": 0.2, **base})
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    tiny = config["experiments"]["tiny"]
    tiny["methods"] = rows
    tiny["grid"] = {"method": list(rows)}
    path.write_text(yaml.safe_dump(config))
    return project


@pytest.fixture
def configured(project):
    """A function that makes the methods of a table the runs of the tiny experiment."""
    return lambda rows, **base: write(project, rows, **base)


INT8 = {"quantisation": "int8"}
ALONE = {"training": "alone", "rounds": 1}
#: Of the extra `int8`, which may not be installed.
ROUGH = {
    "fens_int8": rule("mlp", **INT8),
    "clients_int8": ALONE | INT8,
    "client_1_int8": ALONE | INT8 | {"evaluate_client": 1},
}
ROUGH = ROUGH if find_spec("torchao") else {}
MIXED = {"architectures": ["logistic_regression", {"cnn_small": {"width": 2, "hidden": 4}}]}
EVERYTHING = (
    SEVEN
    | ROUGH
    | {
        "fedavg": {"local": "fedavg"},
        "mixed": rule("mlp", initialisation="own", **MIXED),
        "local_only": ALONE,
        "without_3": rule("voting", forget=[3]),
        "fedkd": ONE_SHOT
        | {
            "aggregator": "weighted",
            "distillation": "l1",
            "server": {"steps": 4, "batch_size": 16, "learning_rate": 0.05},
        },
    }
)


@pytest.fixture(scope="module")
def made(new_project, alone):
    """A finished run of all rules, and of what they are compared with."""
    project = write(replace(new_project(), snakefile=alone), EVERYTHING)
    project.make()
    return project


@pytest.fixture
def again(made, tmp_path):
    """A function that plans other methods in a copy of the finished run."""

    def plan(rows, **changes):
        shutil.copytree(made.path, tmp_path / "copy", symlinks=True)
        copy = write(replace(made, path=tmp_path / "copy"), rows, **changes)
        return copy.plan()

    return plan


GENERATED = ONE_SHOT | {
    "generator": {"cvae": {"latent": 2, "width": 2, "epochs": 1, "samples": 20}},
    "public": "generated",
    "server": {"steps": 4, "batch_size": 16, "learning_rate": 0.05},
}


def test_students_of_generated_images_share_generators_images_and_models(configured):
    rows = {name: GENERATED | {"distillation": name} for name in ("labels", "kl", "l1")}
    jobs = configured(rows | {"fedens": ONE_SHOT}).plan().jobs
    assert jobs["client_generator"] == jobs["local_model"] == CLIENTS
    assert jobs["client_logits"] == 2 * CLIENTS  # on the test set and on generated images
    assert jobs["generated"] == jobs["aggregator"] == 1
    assert jobs["distilled_model"] == 3


def test_whoever_votes_and_with_which_weight_the_clients_are_the_same(configured):
    few = {"random": {"count": 2}, "best": {"count": 2}, "largest": {"count": 2}}
    votes = {name: rule("averaging", members={name: own}) for name, own in few.items()}
    simplex = {"aggregator": "simplex", "aggregator_training": {"mirror_descent": {"rounds": 2}}}
    votes["fedboost"] = ONE_SHOT | simplex
    # Clients that learn an unknown class are other clients, from other initial weights; whatever
    # votes, they are the same.
    unknown = ONE_SHOT | {"unknown": {}}
    knowing = {"fedov": unknown | {"aggregator": "least_unknown"}, "plain": unknown}
    run = configured(SEVEN | votes | knowing).plan()
    assert run.jobs["aggregator"] == len(SEVEN) + len(votes) + len(knowing)
    assert run.jobs["local_model"] == 2 * CLIENTS
    assert run.jobs["initial_model"] == 2


SERVER = {"steps": 4, "batch_size": 16, "learning_rate": 0.05}
STUDENTS = {
    "fedkd": ONE_SHOT | {"aggregator": "weighted", "distillation": "l1", "server": SERVER},
    "fedet_os": ONE_SHOT | {"aggregator": "confidence", "distillation": "fedet", "server": SERVER},
    "fens_distilled": rule("mlp", distillation="kl", server=SERVER),
}


def test_all_methods_of_the_paper_train_each_client_once(configured):
    """FedENS, FedKD, one-shot Fed-ET, FENS by seven rules, and FENS distilled."""
    fedens = ONE_SHOT | {"aggregator": "averaging"}
    run = configured(SEVEN | STUDENTS | {"fedens": fedens}).plan()
    assert run.jobs["local_model"] == CLIENTS
    assert run.jobs["aggregator"] == 8  # the rules, and what Fed-ET's clients say together
    assert run.jobs["distilled_model"] == 3
    assert run.jobs["one_shot_evaluation"] == len(SEVEN) + 3
    assert run.jobs["client_logits"] == 3 * CLIENTS  # test, aggregator, public
    whole = {
        f"{name}_on_all": method | {"local_fraction": 1.0}
        for name, method in {"fedens": fedens, **STUDENTS}.items()
        if name != "fens_distilled"
    }
    run = configured(SEVEN | STUDENTS | {"fedens": fedens} | whole).plan()
    assert run.jobs["local_model"] == 2 * CLIENTS
    assert run.jobs["partition"] == 2


def test_what_reads_finished_models_trains_no_client(again):
    """Without one of them, or by a longer training of the aggregator."""
    longer = {"federated": ROUNDS["federated"] | {"rounds": 9}}
    more = {f"{name}_without_1": rule(name, forget=[1]) for name in RULES}
    more["longer"] = rule("mlp", aggregator_training=longer)
    run = again(EVERYTHING | more)
    assert run.jobs["local_model"] == run.jobs["local_training"] == 0
    assert run.jobs["client_logits"] == 0
    assert run.jobs["aggregator"] == run.jobs["one_shot_evaluation"] == len(more)


# --- a real run -----------------------------------------------------------------------------------


def metrics(project, model="logistic_regression"):
    """The metrics by the part of the folder's name that says the rule."""
    found = {}
    for path in project.files(f"results/aggregators/*-{model}-*/metrics/test.parquet"):
        (row,) = load_table(project.path / path).to_pylist()
        if "without" not in path.parts[2] and "-int8-" not in path.parts[2]:
            found[path.parts[2].split("-")[3]] = row
    return found


def test_a_whole_run_ends_in_a_table(made):
    table = (made.path / "results/tables/tiny/default.csv").read_text().splitlines()
    assert {row.split(",")[0] for row in table[1:]} == set(EVERYTHING)
    assert "| FedKD " in (made.path / "results/tables/tiny/default.md").read_text()
    scored = metrics(made)
    assert set(scored) == set(RULES)
    assert {row["samples"] for row in scored.values()} == {200}
    # Clients that train the weights send them in each of 6 rounds.
    sent = {name: row["bytes_up"] for name, row in scored.items()}
    assert sent["linear"] - sent["averaging"] == 6 * 4 * CLIENTS
    assert sent["per_class"] - sent["averaging"] == 6 * 4 * CLIENTS * 10
    assert made.plan().jobs == {}


@pytest.mark.skipif(not ROUGH, reason="torchao, of the extra `int8`, is not installed")
def test_an_ensemble_in_int8_is_sent_in_a_quarter_of_the_bytes_and_is_as_good(made):
    rows = {}
    for precision, name in (("fp32", "mlp"), ("int8", "mlp-int8")):
        (folder,) = made.files(f"results/aggregators/*-logistic_regression-{name}-seed*")
        (scored,) = load_table(made.path / folder / "metrics/test.parquet").to_pylist()
        sent = load_table(made.path / folder / "rounds.parquet").to_pylist()
        rows[precision] = scored, {row["phase"]: row for row in sent}
    (exact, before), (rough, after) = rows["fp32"], rows["int8"]
    assert 0.25 < after["ensemble"]["bytes_down"] / before["ensemble"]["bytes_down"] < 0.35
    assert after["local_model"] == before["local_model"]
    assert after["activation_ranges"]["bytes_up"] == 8  # one layer
    assert rough["bytes_up"] - exact["bytes_up"] == 8
    assert abs(rough["top1_accuracy"] - exact["top1_accuracy"]) < 5


@pytest.mark.skipif(not ROUGH, reason="torchao, of the extra `int8`, is not installed")
def test_a_client_is_scored_in_int8_as_the_one_of_all_whose_logits_the_ensemble_reads(made):
    (local,) = made.files("results/local_models/*-logistic_regression-alone-*")
    (data,) = made.files("results/data/*/test.safetensors")
    labels = load_tensors(made.path / data)[0]["labels"]

    def scored(who):
        (path,) = made.files(f"{local}/metrics/int8-*/{who}-test-rounds_0001.parquet")
        (row,) = load_table(made.path / path).to_pylist()
        assert row["evaluated"] == who
        return row["top1_accuracy"]

    accuracies = []
    for client in range(CLIENTS):
        (said,) = made.files(f"{local}/logits/int8-*/client_{client}-test.safetensors")
        logits = load_tensors(made.path / said)[0]["logits"]
        accuracies.append(100 * (logits.argmax(1) == labels).double().mean().item())
    assert scored("client_1") == pytest.approx(accuracies[1])
    assert scored("each_client") == pytest.approx(sum(accuracies) / CLIENTS)
    assert len(set(accuracies)) == CLIENTS  # no score would pass for another's


def test_clients_of_different_architectures_speak_to_one_aggregator(made):
    (mixed,) = made.files("results/local_models/*and_others*")
    linear, small = (
        load_tensors(made.path / mixed / f"client_{client}.safetensors")[0] for client in (0, 1)
    )
    assert ("linear.weight" in linear, "conv1.weight" in small) == (True, True)
    assert set(metrics(made, "logistic_regression_and_others")) == {"mlp"}


def test_why_knows_the_stages_of_a_one_shot_run(made, capsys):
    (folder,) = made.files("results/aggregators/*-voting-seed*")
    (local,) = made.files("results/local_models/*-logistic_regression-alone-*")
    for name in (
        folder / "aggregator.safetensors",
        folder / "rounds.parquet",
        folder / "metrics/test.parquet",
        local / "logits/fp32/client_1-aggregator.safetensors",
        *made.files("results/local_models/*/metrics/*/*-test-rounds_0001.parquet"),
        *made.files("results/local_models/*/quantised/*/client_1.safetensors"),
        *made.files("results/local_models/*/logits/int8-*/client_1-test.safetensors"),
        *made.files("results/distilled_models/*/model.safetensors"),
        *made.files("results/distilled_models/*/metrics/test.parquet"),
    ):
        assert main(["why", str(made.path / name)]) == 0
        shown = capsys.readouterr().out
        assert "  source    the same now" in shown
        assert "unchanged" in shown
