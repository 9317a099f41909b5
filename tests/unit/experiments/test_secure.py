"""Secure aggregation is for methods whose server needs sums, which the graph decides."""

from pathlib import Path

import pytest
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.experiments.resolution import resolve
from fedstage.settings.experiments import Experiment
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

METHODS = load_yaml(Path(__file__).parents[3] / "workflow/methods.yaml")
METHODS["fedet_by_index"] = {"like": "fedet", "client_groups": "by_index"}
SECURE = {"threshold": 5, "clip": 0.5, "most_samples": 500}
BASE = federated(
    data={"digits": {"held_out": 100, "server_validation": 20}},
    clients=20,
    validation=0.1,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=8,
    server={"steps": 50, "batch_size": 16, "learning_rate": 0.01},
    aggregation={"secure": SECURE},
    rounds=3,
)


def resolved(method, secure=SECURE, **changes):
    aggregation = {"secure": secure} | changes.pop("aggregation", {})
    base = BASE | {"aggregation": aggregation, "method": method} | changes
    raw = {"title": "a", "base": base, "scales": {"default": None}}
    (run,) = resolve("a", validate(Experiment, raw, "here"), "default", METHODS)
    return run.recipe


def refused(method, **changes):
    with pytest.raises(FedstageError) as caught:
        resolved(method, **changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("method", "stage", "file"),
    [
        ("feddf", "logits", "group_0/participant_0.safetensors"),
        ("fedbe_gaussian", "logits", "group_0/participant_0.safetensors"),
        ("fedftg", "data_free_distillation", "group_0/participant_0.safetensors"),
    ],
)
def test_the_stage_and_the_file_of_single_clients_are_named(method, stage, file):
    message = refused(method)
    assert f"aggregation.secure: stage {stage} reads results/" in message
    assert message.endswith(
        f"{file}, which contains individual client data; secure aggregation requires methods whose "
        "server needs only sums"
    )


def test_the_training_of_an_aggregator_may_use_it_although_models_are_exchanged():
    training = {"federated": {"secure": SECURE | {"threshold": 11}}}
    fens = {"rounds": 1, "aggregator_fraction": 0.1, "secure": None}
    assert resolved("fens", **fens, aggregator_training=training).aggregator_training.secure
    few = {"federated": {"secure": SECURE}}
    assert (
        "aggregator_training.secure.threshold = 5: must be more than half of a group's "
        "participants, and at most all: 11 to 20"
    ) in refused("fens", **fens, aggregator_training=few)


SUM = "aggregation.secure: needs updates of which the server needs the sum alone, not "


@pytest.mark.parametrize(
    ("method", "changes", "reason"),
    [
        (
            "scaffold",
            {"local": {"scaffold": {"weights": "samples"}}},
            "local.weights = samples",
        ),
        ("fednova", {}, "local = fednova"),
        ("fedavg", {"compression": "stc"}, "compression = stc"),
        ("fedavg", {"aggregation": {"rule": "median"}}, "aggregation.rule = median"),
        ("fedavg", {"staleness": "never"}, "staleness = never"),
    ],
)
def test_what_else_leaves_clients_is_named(method, changes, reason):
    assert SUM + reason in refused(method, **changes)


@pytest.mark.parametrize(
    ("secure", "message"),
    [
        ({"threshold": 4}, "threshold = 4: must be more than half of a group's participants, and "
                           "at most all: 5 to 8"),
        ({"threshold": 9}, "threshold = 9: must be more than half"),
        ({"bits": 30}, "bits = 30: at most 29 for 8 participants of a group"),
        ({"most_samples": 2**29}, "most_samples = 536870912: at most 536870911 for 8 participants"),
        ({"dropped": {"share": 0.6, "unmask": 0.6}}, "share + masked_input + unmask = 1.2: at mo"),
    ],
)  # fmt: skip
def test_settings_by_which_sums_could_wrap_or_be_split_are_refused(secure, message):
    assert message in refused("fedavg", secure=SECURE | secure)
