"""What a person gets wrong, and that one line tells: which key or file, its value, what is allowed.

To add a case: a row of the tables below.
"""

import copy
import json
import shlex
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.experiments.catalogue import load_catalogue
from fedstage.storage.files import save_json
from fedstage.storage.tensors import save_tensors

METHODS_FILE = Path(__file__).parents[3] / "workflow/methods.yaml"
REMOVED = object()
#: Students of images that the server generates in the rounds.
FED_FTG = {"generator": "fedftg", "public": "generated"}
#: Words of the libraries underneath, which tell a person nothing.
JARGON = (
    "using discriminator",
    "instance of",
    "extract",
    "after validation",
    "<class",
    "Traceback",
)

# --- configuration --------------------------------------------------------------------------------

CONFIG = {
    "targets": ["e"],
    "experiments": {
        "e": {
            "title": "E",
            "base": {
                "data": "digits",
                "clients": 10,
                "partition": {"dirichlet": {"alpha": 0.1}},
                "validation": 0.1,
                "participants": 4,
                "model": "cnn_small",
                "rounds": 8,
                "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
                "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
                "seed": 0,
            },
            "grid": {"method": ["fedavg", "feddf"]},
            "scales": {"default": None},
        }
    },
}


@dataclass(frozen=True)
class Bad:
    """A fault of a configuration.

    Attributes
    ----------
    changes : dict
        Value at each path of `CONFIG`; ``e:`` stands for the experiment, ``b:`` for its base.
    told : tuple of str
        What the message must contain.
    files : dict
        Content of files in the folder `workflow`.
    lines : int
        Number of faults, and so of lines.
    """

    told: tuple[str, ...]
    changes: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str | bytes | None] = field(default_factory=dict)
    lines: int = 1


def set_at(config, path, value):
    path = path.replace("b:", "experiments/e/base/").replace("e:", "experiments/e/")
    *parents, last = path.split("/")
    for key in parents:
        config = config.setdefault(key, {})
    if value is REMOVED:
        del config[last]
    else:
        config[last] = value


def at(path, value, *told, **more):
    return Bad(told, {path: value}, **more)


def at_all(changes, *told):
    return Bad(told, changes)


#: A server whose students ask their teachers, and data by which it can judge.
ASKED = {"b:server/augmentation": "flip", "b:server/teacher_images": "augmented"}
JUDGING = {"digits": {"server_validation": 9}}


def in_file(content, *told, name="experiments/f.yaml"):
    return Bad((name, *told), files={name: content})


def method(settings, *told, name="feddf"):
    return Bad(told, {"e:methods": {name: settings}, "e:grid": {"method": [name]}})


CHOICES = {
    "data": "'digits', 'cifar10', 'cifar100', 'svhn', 'parquet', 'image_folder', 'table'",
    "partition": "'iid', 'dirichlet', 'dirichlet_by_client', 'dirichlet_equal', 'shards', "
    "'natural'",
    "model": "'cnn_small', 'cnn', 'logistic_regression', 'resnet8'",
    "compression": "'none', 'stc'",
    "public": "'held_out', 'core', 'generated', 'digits', 'cifar10'",
    "evaluate": "'global_model', 'each_client', 'split_model', 'clients'",
}
PARTS = {
    "local": "'fedavg', 'fedprox', 'scaffold', 'fednova', 'moon', 'fedntd', 'fedlc'",
    "ensemble": "'clients', 'aggregated'",
    "global": "'basic', 'designated'",
}

TWO = {"global_models": 2, "architectures": ["cnn_small", "resnet8"]}

ONE_SHOT = {"training": "one_shot", "rounds": 1, "aggregator_fraction": 0.1}
ROUNDS = {"federated": {"rounds": 5}}


def one_shot(settings, *told):
    return method(ONE_SHOT | settings, "method own", *told, name="own")


def fitted(training, *told, **changes):
    """An aggregator that is trained."""
    return one_shot({"aggregator": "mlp", "aggregator_training": training} | changes, *told)


#: What one-shot federated learning may not be asked for.
ONE_SHOT_FAULTS = [
    one_shot({"aggregator": "median"}, "aggregator = 'median'", "'voting', 'moe'"),
    one_shot({"aggregator": {"mlp": {"units": 9}}}, "aggregator.units = 9", "unknown key"),
    fitted({"central": {}}, "aggregator_training = 'central'", "'federated', 'mirror_descent'"),
    fitted(
        {"federated": {"rounds": 5, "server_optimizer": "lamb"}},
        "aggregator_training.server_optimizer = 'lamb'",
        "'adam', 'yogi'",
    ),
    one_shot({"initialisation": "new"}, "initialisation = 'new'", "'common'"),
    fitted({"federated": {"rounds": 0}}, "training.rounds = 0"),
    fitted("federated", "aggregator_training.rounds: missing"),
    one_shot({"aggregator": "linear"}, "aggregator_training = null", "federated"),
    fitted(ROUNDS, "aggregator_fraction = 0.0", "above 0", aggregator_fraction=0.0),
    fitted(ROUNDS, "local_fraction = 1.0", "no client's model was trained on", local_fraction=1.0),
    one_shot(
        {"aggregator": "voting", "local_fraction": 1.0}, "aggregator = 'voting'", "set aggregator_"
    ),
    one_shot(
        {
            "data": "heart_disease",
            "clients": 4,
            "partition": "natural",
            "model": "logistic_regression",
            "aggregator": "moe",
            "aggregator_training": ROUNDS,
        },
        "aggregator = moe: needs samples that are images",
        "not data = heart_disease, whose samples are features",
    ),
    one_shot(
        {
            "data": "heart_disease",
            "clients": 4,
            "partition": "natural",
            "architectures": ["logistic_regression", "cnn_small"],
        },
        "model = 'cnn_small'",
        "are features",
    ),
    one_shot({"local_fraction": 0.45}, "local_fraction = 0.45", "1 - aggregator_fraction = 0.9"),
    one_shot({"aggregator_fraction": 1.0}, "aggregator_fraction = 1.0", "less than 1"),
    one_shot({"forget": [10]}, "forget = [10]", "at most 9"),
    one_shot({"forget": list(range(10))}, "at least 1 client must stay"),
    one_shot({"forget": ["hospital"]}, "forget.0 = 'hospital'", "integer"),
    one_shot({"rounds": 3}, "rounds = 3", "one_shot has 1"),
    fitted(ROUNDS, "aggregator_training = 'federated'", "by mirror_descent", aggregator="simplex"),
    fitted(
        {"mirror_descent": {"rounds": 5}},
        "aggregator_training = 'mirror_descent'",
        "by federated",
    ),
    one_shot({"aggregator": "simplex"}, "aggregator_training = null", "needs mirror_descent"),
    fitted(
        {"mirror_descent": {"rounds": 5, "predictors": 4}},
        "aggregator_training.predictors = 4",
        "at most 3",
        aggregator="simplex",
        members={"random": {"count": 3}},
    ),
    one_shot(
        {"members": {"worst": {"count": 3}}}, "members = 'worst'", "'random', 'best', 'largest'"
    ),
    one_shot({"members": "best"}, "members.count: missing"),
    one_shot(
        {"members": {"random": {"count": 9}}, "forget": [1, 2]}, "members.count = 9", "at most 8"
    ),
    one_shot(
        {"members": {"best": {"count": 3, "by": "test"}}}, "members.by = 'test'", "'validation'"
    ),
    one_shot(
        {"members": {"best": {"count": 3}}, "validation": 0.0}, "validation = 0", "members = best"
    ),
    one_shot({"aggregator": "least_unknown"}, "unknown = null", "aggregator = least_unknown"),
    one_shot(
        {"prototypes": {}, "model": "cnn_small"},
        "model = 'cnn_small': prototypes needs an architecture without head that pools "
        "its last feature maps, such as resnet8 or wrn16_2",
    ),
    one_shot(
        {"prototypes": {}, "data": "heart_disease", "clients": 4, "model": "mlp", "server": None},
        "prototypes: needs samples that are images",
        "not data = heart_disease, whose samples are features",
    ),
    one_shot(
        {"distillation": "closed_form", "model": "cnn_small"},
        "model = 'cnn_small': distillation = 'closed_form' needs an architecture without head",
    ),
    one_shot(
        {"distillation": "closed_form", "model": "resnet8", "members": {"random": {"count": 2}}},
        "members = random: needs an ensemble that predicts with clients' models, not "
        "distillation = closed_form, for which no client trains a model",
    ),
    one_shot(
        {"distillation": {"closed_form": {"shrinkage": 1.5}}, "model": "resnet8"},
        "distillation.shrinkage = 1.5",
        "equal to 1",
    ),
    one_shot(
        {"model": {"resnet8": {"more_outputs": "features"}}},
        "model.more_outputs = 'features': follows from unknown or prototypes",
    ),
    one_shot(
        {"prototypes": {}, "model": "resnet8", "quantisation": "int8"},
        "quantisation = int8: needs outputs of models that nothing else takes, not "
        "prototypes, which are learnt in place of outputs, in steps of their own",
    ),
    one_shot(
        {"prototypes": {}, "model": "resnet8", "unknown": {}},
        "unknown: needs outputs of models that nothing else takes, not prototypes, "
        "which are learnt in place of outputs, in steps of their own",
    ),
    one_shot(
        {
            "prototypes": {},
            "model": "resnet8",
            "architectures": ["resnet8", "wrn16_2"],
            "aggregator": "fused_features",
        },
        "architectures: must be one with aggregator = fused_features",
    ),
    one_shot({"aggregator": "fused_features"}, "prototypes = null: aggregator = fused_features"),
    one_shot(
        {"prototypes": {}, "model": "resnet8", "client": {"loss": "focal"}},
        "prototypes: needs client.loss = cross_entropy, not client.loss = focal",
    ),
    one_shot({"unknown": {"outliers": "mixup"}}, "outliers = 'mixup'", "'corruptions', 'noise'"),
    one_shot({"unknown": {"outliers": None}}, "attack: needs outliers", "set attack to null"),
    one_shot(
        {"unknown": {}, "data": "heart_disease", "model": "mlp", "server": None},
        "unknown.outliers = 'corruptions'",
        "made from images",
        "features",
    ),
    one_shot(
        {"unknown": {"outliers": "noise"}, "data": "heart_disease", "server": None}
        | {"model": {"logistic_regression": {"outputs": 1}}},
        "outputs = 1: not with unknown",
    ),
    one_shot(
        {"unknown": {}, "client": {"loss": "focal"}},
        "unknown: needs client.loss = cross_entropy, not client.loss = focal",
        "cross_entropy",
    ),
    one_shot(
        {"unknown": {}, "numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not unknown, whose "
        "steps have no code for it",
    ),
    one_shot(
        {"distillation": "kl", "student": {"cnn_small": {"more_outputs": 1}}},
        "student.more_outputs = 1",
        "only for models of clients",
    ),
    one_shot({"distillation": "mse"}, "distillation = 'mse'", "'l1', 'l2', 'fedet'"),
    one_shot({"distillation": {"fedet": {"lambda": 1}}}, "distillation.lambda = 1", "unknown key"),
    one_shot({"distillation": "kl", "student": "resnet9"}, "student = 'resnet9'", "'resnet8'"),
    Bad(
        (
            "method own",
            "server = null",
            "distillation = kl: needs the server's settings, not server = null",
        ),
        {
            "e:methods": {"own": ONE_SHOT | {"distillation": "kl"}},
            "e:grid": {"method": ["own"]},
            "b:server": REMOVED,
        },
    ),
    one_shot({"distillation": "kl", "data": {"digits": {"held_out": 0}}}, "data.held_out = 0"),
    one_shot(
        {"distillation": "kl", "server": {"drop_worst": "as_published"}},
        "server.drop_worst = as_published: needs client models that are fused in rounds",
        "not distillation = kl, in one shot",
    ),
    one_shot(
        {"distillation": "kl", "server": {"early_stopping": {}}}, "data.server_validation = 0"
    ),
    one_shot(
        {"distillation": "kl", "server": {"labels": 1.0}},
        "server.labels = 1.0: needs labelled public samples, public = core or "
        "generated, not public = held_out",
    ),
    one_shot(
        {"distillation": "kl", "public": "generated"}, "generator = null: public = generated needs"
    ),
    one_shot(
        {"distillation": "kl", "generator": "cvae"},
        "generator = cvae: needs public = generated, not public = held_out",
    ),
    one_shot(
        {"distillation": "labels"},
        "distillation = labels: needs labelled public samples, public = core or "
        "generated, not public = held_out",
    ),
    one_shot(
        {"generator": "cvae", "data": "heart_disease", "clients": 4, "model": "mlp"},
        "generator = cvae: needs samples that are images",
        "not data = heart_disease, whose samples are features",
    ),
    one_shot(
        {"generator": "dense", "server": {"steps": None, "epochs": 2}},
        "generator.batch_norm = 1.0: model = 'cnn_small' has no batch normalisation",
    ),
    one_shot(
        {"generator": "coboosting"},
        "generator = coboosting: needs server.epochs, not server.epochs = null",
    ),
    one_shot(
        {"distillation": "cotrained", "generator": "cvae", "public": "generated"},
        "distillation = cotrained: needs a generator that the server trains, dense or "
        "coboosting, not generator = cvae",
    ),
    one_shot(
        {
            "generator": "coboosting",
            "members": {"random": {"count": 3}},
            "server": {"steps": None, "epochs": 2},
        },
        "members = random: needs an ensemble that predicts with clients' models, not "
        "generator = coboosting, whose student learns with it, from the models of "
        "all clients",
    ),
    one_shot(
        {"generator": "coboosting", "unknown": {}, "server": {"steps": None, "epochs": 2}},
        "unknown: needs an ensemble that predicts with clients' models, not generator "
        "= coboosting, whose student learns with it, from the models of all clients",
    ),
    one_shot(
        {
            "generator": "cvae",
            "public": "generated",
            "distillation": "labels",
            "members": {"random": {"count": 3}},
        },
        "members = random: needs an ensemble that predicts with clients' models, not "
        "distillation = labels, which no client's model teaches",
    ),
    one_shot(
        {"generator": "cvae", "public": "generated", "distillation": "labels", "unknown": {}},
        "unknown: needs an ensemble that predicts with clients' models, not "
        "distillation = labels, which no client's model teaches",
    ),
    one_shot({"generator": "gan"}, "generator = 'gan'", "'cvae'"),
    one_shot(
        {"distillation": "kl", "server": {"factor_transfer": {}}, "model": "resnet8"},
        "server.factor_transfer: needs teachers in rounds that look at a student's "
        "public images, not distillation = kl, in one shot",
    ),
    one_shot(
        {"distillation": "kl", "server": {"augmentation": "flip", "teacher_images": "augmented"}},
        "server.teacher_images = augmented: needs teachers in rounds that look at a "
        "student's public images, not distillation = kl, in one shot",
    ),
    one_shot(
        {"distillation": "kl", "server": {"buffer": {"after": 2}}},
        "server.buffer.after = 2: needs rounds, not distillation = kl, in one shot",
    ),
    one_shot({"quantisation": "int4"}, "quantisation = 'int4'", "'none', 'int8'"),
    one_shot({"quantisation": {"int8": {"bits": 4}}}, "quantisation.bits = 4", "unknown key"),
    # The test set must not choose anything.
    method(
        {"choose": {"among": {"client.epochs": [1, 2]}, "on": "test"}},
        "choose.on = 'test'",
        "must be 'validation'",
    ),
    Bad(
        ("method own", "validation = 0", "choose needs more than 0"),
        {
            "e:methods": {"own": {"choose": {"among": {"client.epochs": [1, 2]}}}},
            "e:grid": {"method": ["own"]},
            "b:validation": 0.0,
        },
    ),
    method({"choose": {"among": {}}}, "choose.among = {}", "at least"),
    method(
        {"choose": {"among": {"client.epochs": []}}}, "choose.among.client.epochs = []", "at least"
    ),
    method(
        {"choose": {"among": {"client.epochs": [1, 0]}}}, "choose: client.epochs = 0", "equal to 1"
    ),
    method({"choose": {"among": {"client.lr": [0.1]}}}, "choose: client.lr = 0.1", "unknown key"),
    method({"initialisation": "new"}, "method fedavg", "initialisation = 'new'", name="fedavg"),
    Bad(
        ("results = 'properties'", "training = 'one_shot'", "must be 'federated'"),
        {
            "e:methods": {"fens": ONE_SHOT},
            "e:grid": {"method": ["fens"]},
            "e:results": ["properties"],
        },
    ),
]

KD = ONE_SHOT | {"aggregator": "weighted", "distillation": "l1"}


def started(start, *told, kd=None, **own):
    """Methods of which `own` starts from what another, such as `kd`, has ended in."""
    methods = {"tutor": KD | (kd or {}), "own": {"start": start, **own}}
    return Bad(("method own", *told), {"e:methods": methods, "e:grid": {"method": ["own"]}})


#: What a run cannot start from.
START_FAULTS = [
    started("fedkat", "method = 'fedkat'", "unknown; did you mean 'fedgkt'"),
    started(3, "start = 3", "name of a method"),
    started({"rounds": 3}, "start = {'rounds': 3}", "{method: NAME"),
    started("own", "start: method = 'own': starts from itself"),
    started(
        "tutor", "start tutor", "start: method = 'own': starts from itself", kd={"start": "own"}
    ),
    started("fedens", "one_shot without distillation", "one model"),
    started(
        "tutor",
        "own",
        "needs models with the outputs of what they start from, not unknown",
        training="one_shot",
        rounds=1,
        unknown={},
    ),
    started("local_only", "alone or pooled", "must be federated"),
    started(
        {"method": "tutor", "choose": {"among": {"client.epochs": [1, 2]}}},
        "start tutor: choose: only",
    ),
    started(
        {"method": "tutor", "data": {"digits": {"test": 99}}},
        "start: data = 'digits'",
        "of the run",
    ),
    started({"method": "tutor", "clients": 9}, "clients = 9", "run, 10"),
    started({"method": "tutor", "validation": 0.0}, "validation = 0.0", "run, 0.1"),
    started({"method": "tutor", "seed": 1}, "seed = 1", "run, 0"),
    started(
        {"method": "tutor", "student": "resnet8"}, "model = 'resnet8'", "the run's, 'cnn_small'"
    ),
    started({"method": "tutor", "klient": {}}, "start tutor", "klient"),
    started({"method": "tutor", "client": {"epochs": 0}}, "start tutor", "client.epochs = 0"),
    started(
        {"method": "fedavg", "rounds": 2}, "initialisation = 'own'", **KD, initialisation="own"
    ),
    started(
        {"method": "fedavg", "rounds": 2},
        "start = 'results/training",
        "no client's model was trained on",
        **ONE_SHOT,
        aggregator="voting",
    ),
]

#: What cannot be made of an experiment's communication, or shown beside a result.
COMMUNICATION_FAULTS = [
    at("e:table", {"also": ["median"]}, "table.also.0 = 'median'", "must be 'maximum'"),
    at("e:communication", {"unit": "MB"}, "communication.unit = 'MB'", "unknown key"),
    Bad(
        ("e: communication.published.paper = 'fenss'", "use one of fens"),
        {"e:communication": {"published": {"paper": "fenss", "table": "table4"}}},
        {"papers/fens/paper.yaml": "{label: FENS, title: T, scale: S}"},
    ),
    Bad(
        ("table.metric = 'round_s'", "nor communication"),
        {"e:table": {"metric": "round_s"}, "e:results": ["round_times", "communication"]},
    ),
]

FOCAL = {"focal": {"class_weights": [1.0, 2.0]}}

#: What the data cannot give, known without reading them.
SIZE_FAULTS = [
    at_all({"b:clients": 2000, "b:partition": "iid"}, "clients = 2000: at most the 1077 training"),
    at_all(
        {"b:clients": 1077, "b:partition": "iid", "b:core": {}},
        "clients = 1077 and the server's core: at most the 1077 training samples",
    ),
    one_shot({"clients": 2000, "partition": "iid"}, "clients = 2000: at most the 1077"),
    method({"clients": 2000, "partition": "iid"}, "clients = 2000: at most", name="local_only"),
    at(
        "b:partition",
        {"dirichlet": {"alpha": 1, "min_samples": 108}},
        "partition.min_samples = 108: at most 107, as 10 clients share 1077 training samples",
    ),
    at(
        "b:partition",
        {"shards": {"classes_per_client": 11}},
        "partition.classes_per_client = 11: at most 10, the classes of data = digits",
    ),
    at_all(
        {"b:clients": 600, "b:partition": "shards"},
        "partition.classes_per_client = 2: at most 1, as 600 clients share 1077",
    ),
    at("b:data", {"digits": {"test": 1797}}, "data: test = 1797: at most 1796 (there are 1797"),
    at("b:data", {"digits": {"held_out": 1500}}, "data: held_out = 1500: at most 1436"),
    at("b:data", {"cifar10": {"train_size": 50001}}, "train_size = 50001: at most 50000"),
    at("b:data", {"svhn": {"test_size": 26033}}, "test_size = 26033: at most 26032"),
    at("b:data", {"cifar100": {"server_validation": 50000}}, "server_validation = 50000: at most"),
    at("b:public", {"cifar10": {"held_out": 60000}}, "public: held_out = 60000: at most 49999"),
    at("b:model", "resnet8_wide", "model = 'resnet8_wide': needs images of at least 13x13", "8x8"),
    at_all(
        {
            "b:data": {"parquet": {"folder": "f", "image_size": 8, "held_out": 9}},
            "b:model": "vgg19",
        },
        "model = 'vgg19': needs images of at least 32x32",
        "data = parquet have 8x8",
    ),
    one_shot(
        {"distillation": "kl", "student": "vgg19"}, "model = 'vgg19': needs images of at least"
    ),
    at("b:model", {"logistic_regression": {"outputs": 1}}, "outputs = 1: only for 2 classes", "10"),
    at_all(
        {
            "b:data": "sent140",
            "b:model": "bert",
            "e:grid": {"method": ["fedntd"]},
        },
        "local = fedntd: needs at least 3 classes, and the data have 2",
    ),
    at("b:client/loss", FOCAL, "client.loss = focal: 2 class_weights", "data = digits has 10"),
    at_all(
        {
            "b:data": "heart_disease",
            "b:partition": "natural",
            "b:model": "mlp",
            "b:clients": 5,
            "e:grid": {"method": ["fedavg"]},
        },
        "clients = 5: must be 4 in all, the centres of data = heart_disease",
    ),
    at("b:public", "cifar10", "public = cifar10: images of shape [3, 32, 32]", "[1, 8, 8]"),
    at_all(
        {
            "b:data": {"ag_news": {"length": 200}},
            "b:model": {"bert": {"positions": 128}},
            "e:grid": {"method": ["fedavg"]},
        },
        "model.positions = 128: must be at least 200",
    ),
    at("b:seed", 2**70, "seed = 1180591620717411303424", "less than"),
    at("b:data", {"digits": {"split_seed": -(2**70)}}, "data.split_seed = -118", "greater than"),
    at_all(
        {"b:seed": REMOVED, "e:grid": {"method": ["fedavg"], "seed": [0, 1, 0]}},
        "e/default: grid.seed: 0 is listed twice; keep one",
    ),
    at("e:grid", {"seed": [0, 1, 0, 0]}, "grid.seed: 0 is listed 3 times; keep one"),
    at("e:grid", {"method": ["fedavg", "fedavg"]}, "grid.method: 'fedavg' is listed twice"),
    at_all(
        {
            "e:grid": {"method": ["fedavg"], "model": ["cnn_small", {"name": "cnn_small"}]},
            "e:table": {"rows": ["method", "model"]},
        },
        "grid.model: {'name': 'cnn_small'} is listed twice",
    ),
    at(
        "e:table", {"rows": ["method"], "columns": ["method"]}, "'method' is among rows and columns"
    ),
]

BAD_CONFIGURATIONS = [
    *SIZE_FAULTS,
    *ONE_SHOT_FAULTS,
    *START_FAULTS,
    *COMMUNICATION_FAULTS,
    Bad(
        ("e/", "methods.feddf.label = 'FedAvg'", "one method per label is allowed"),
        {"e:methods": {"feddf": {"label": "FedAvg"}}, "e:grid": {"method": ["fedavg", "feddf"]}},
    ),
    method({"label": "Fed\nDF"}, "methods.feddf: label: 'Fed\\nDF'", "must be one line"),
    at("e:title", " ", "e.title: ' '", "must be one line"),
    # unknown keys, at every level
    at("tarjets", 1, "config.yaml", "tarjets = 1", "unknown key"),
    at("e:titel", "x", "e.titel = 'x'", "unknown key"),
    at("e:scales/default", {"bas": {}}, "scales.default.bas", "unknown"),
    at("e:table", {"row": []}, "table.row = []", "unknown key"),
    at("b:lokal", "fedavg", "lokal = 'fedavg'", "unknown key"),
    at("b:client/lr", 0.1, "client.lr = 0.1", "unknown key"),
    at("b:client/temperature", 3, "client.temperature = 3"),
    at("b:data", {"digits": {"tets": 9}}, "data.tets = 9", "unknown"),
    at("b:partition", {"iid": {"alpha": 1}}, "partition.alpha = 1"),
    at("b:client/schedule", {"cosine": {"finale": 0}}, "client.schedule.finale = 0", "unknown key"),
    at("b:numerics", {"cores": 2}, "numerics.cores = 2", "unknown"),
    at("b:aggregation", {"weight": 1}, "aggregation.weight = 1"),
    method({"globul": 1}, "feddf", "globul = 1", "unknown key"),
    method({"global": {"basic": {"warm": 1}}}, "global.warm = 1"),
    at("e:grid/client.lr", [0.1], "client.lr = 0.1", "unknown key"),
    at("e:grid/klient.epochs", [1], "klient", "unknown key"),
    at("b:global_trainer", "basic", "global_trainer", "unknown key"),
    at("b:evaluate_evry", 2, "= 2: unknown key; did you mean 'evaluate_every'?"),
    at_all({"b:round": 5, "b:rounds": REMOVED}, "round = 5: unknown key; did you mean 'rounds'?"),
    at("b:zzz", 1, "zzz = 1: unknown key; use one of aggregat", " evaluate_every, ", " rounds, "),
    at("b:epochs", 2, "epochs = 2: unknown key; did you mean 'client.epochs'?"),
    at("b:learning_rate", 2, "= 2: unknown key; did you mean 'client.learning_rate'?"),
    at("b:alpha", 1, "alpha = 1: unknown key; did you mean 'partition.alpha'?"),
    at("e:grid/epochs", [1], "epochs = 1: unknown key; did you mean 'client.epochs'?"),
    method({"epochs": 2}, "feddf: epochs = 2: unknown key; did you mean 'client.epochs'?"),
    Bad(("zzz = 1: unknown", "round = 5: unknown"), {"b:zzz": 1, "b:round": 5}, lines=2),
    method({"method": "fedavg"}, "method = 'fedavg'", name="own"),
    Bad(("own", "lokal = 'fedavg'", "unknown key"), {"e:methods": {"own": {"lokal": "fedavg"}}}),
    # sizes that no machine has
    at(
        "b:client/epochs", 10**18, "client.epochs = 1000000000000000000: must be less", "1000000000"
    ),
    at("b:evaluate_every", 10**10, "evaluate_every = 10000000000: must be less than or equal to"),
    at("b:server/steps", 10**10, "server.steps = 10000000000: must be less than or equal to"),
    at("b:clients", 10**7, "clients = 10000000: must be less than or equal to 1000000"),
    at(
        "b:model",
        {"mlp": {"hidden": [10**8, 10**8]}},
        "model.hidden.0 = 100000000: must be less than or equal to 100000",
        "model.hidden.1",
        lines=2,
    ),
    at(
        "b:model",
        {"mlp": {"hidden": [10**5] * 3}},
        "model = 'mlp': 20,007,700,010 numbers, at most 10,000,000,000 are allowed",
    ),
    at_all(
        {"b:architectures": ["cnn_small", {"cnn_small": {"width": 10**5}}], "b:global_models": 2},
        "architectures = 'cnn_small': 180,0",
    ),
    # missing keys
    at("targets", REMOVED, "config.yaml", "targets: missing"),
    at("e:title", REMOVED, "experiments.e.title: missing"),
    at("e:base", REMOVED, "e/default", "rounds: missing"),
    at("b:clients", REMOVED, "clients: missing"),
    at("b:seed", REMOVED, "seed: missing"),
    at("b:rounds", REMOVED, "rounds: missing"),
    at("b:client", REMOVED, "client: missing"),
    at("b:client/batch_size", REMOVED, "client.batch_size: missing"),
    at("b:partition", "dirichlet", "partition.alpha: missing"),
    at("b:data", "parquet", "data.folder: missing"),
    at("b:client/schedule", "step", "client.schedule.milestones: missing"),
    # wrong types
    at("b:clients", "ten", "clients = 'ten'", "must be a valid integer"),
    at("b:clients", 2.5, "clients = 2.5", "must be a valid integer"),
    at("b:participants", True, "participants = True", "integer"),
    at("b:seed", "zero", "seed = 'zero'", "must be a valid integer"),
    at("e:grid/seed", [0, "1"], "seed = '1'", "integer"),
    at("b:client/learning_rate", "fast", "client.learning_rate = 'fast'", "number"),
    at("keep", "some", "keep = 'some'", "must be 'all', 'models' or 'needed'"),
    at("targets", "e", "targets = 'e'", "list"),
    at("e:table", {"over": "rounds"}, "table.over = 'rounds'", "use one of"),
    at("e:grid/seed", 0, "grid.seed = 0", "list"),
    at("e:grid/seed", {}, "grid.seed = {}", "with at least 1 item"),
    at("e:grid/seed", {"one": 1}, "grid.seed", "must be a list"),
    at("b:client", "sgd", "client = 'sgd'", "mapping"),
    at("b:client", None, "client = null", "mapping"),
    at("e:base", [1], "experiments.e.base = [1]"),
    at("experiments", ["e"], "config.yaml", "experiments = ['e']"),
    at("b:data", ["digits"], "data = ['digits']", "name"),
    at("b:data", None, "data = null", "name"),
    at("b:partition", {"dirichlet": 1}, "partition = ", "name"),
    at("b:data", {"digits": {}, "svhn": {}}, "data = ", "name"),
    at("e:grid/ensemble.checkpoints", [1], "ensemble = ", "name"),
    at("e:methods", {"own": None}, "methods.own = null"),
    # out of range
    at("b:clients", 0, "clients = 0", "greater than or equal to 1"),
    at("b:participants", 0, "participants = 0", "greater than or equal to 1"),
    at("b:rounds", 0, "rounds = 0", "greater than or equal to 1"),
    at("b:rounds", 10_000, "rounds = 10000", "must", "99"),
    at("b:evaluate_every", 0, "evaluate_every = 0", "or equal to 1"),
    at("b:partition", {"dirichlet": {"alpha": 0}}, "partition.alpha = 0", "than 0"),
    at("b:partition", {"dirichlet": {"alpha": -0.5}}, "partition.alpha = -0.5"),
    at("b:partition", {"dirichlet": {"alpha": nan}}, "alpha = nan", "finite"),
    Bad(
        ("partition.alpha = 0", "greater than 0"),
        {"e:grid/partition.alpha": [1, 0], "e:table": {"columns": ["partition.alpha"]}},
    ),
    at("b:client/learning_rate", inf, "client.learning_rate = inf", "finite"),
    at("b:client/learning_rate", 0, "client.learning_rate = 0", "greater than 0"),
    at("b:client/momentum", 1.0, "client.momentum = 1.0", "less than 1"),
    at("b:client/clip_norm", 0, "client.clip_norm = 0", "greater than 0"),
    at("b:client/loss", {"focal": {"gamma": -1}}, "client.loss.gamma = -1", "or equal to 0"),
    at("b:client/loss", {"focal": {"class_weights": [1, 0]}}, "loss.class_weights.1 = 0", "than 0"),
    at("b:client/loss", {"focal": {"class_weights": []}}, "loss.class_weights = []", "at least 1"),
    at("b:client/loss", {"focal": {"class_weights": 2.0}}, "client.loss.class_weights = 2.0"),
    at("b:client/loss", "hinge", "client.loss = 'hinge'", "'focal'"),
    at("b:server/loss", "focal", "server.loss = ", "unknown key"),
    at("b:client/batch_size", 0, "client.batch_size = 0", "or equal to 1"),
    at("b:client/epochs", 0, "client.epochs = 0", "or equal to 1"),
    at("b:server/steps", 0, "server.steps = 0", "or equal to 1"),
    at("b:server/temperature", 0, "server.temperature = 0", "greater than 0"),
    at("b:client/round_decay", 1.1, "client.round_decay = 1.1", "equal to 1"),
    at("b:client/schedule", {"step": {"milestones": [0.5, 1.5]}}, "milestones.1 = 1.5", "than 1"),
    at("b:client/schedule", {"step": {"milestones": []}}, "milestones = []", "1"),
    at("b:validation", 1.0, "validation = 1.0", "less than 1"),
    method({"local": {"fedprox": {"mu": -1}}}, "local.mu = -1", "or equal to 0"),
    method({"global": {"basic": {"warm_up": -1}}}, "global.warm_up = -1"),
    method({"ensemble": {"aggregated": {"checkpoints": 0}}}, "checkpoints = 0"),
    at("b:numerics", {"threads": 0}, "numerics.threads = 0", "or equal to 1"),
    at("state_every", 0, "config.yaml", "state_every = 0"),
    at("execution", {"gpu": -1}, "config.yaml", "execution.gpu = -1"),
    at("execution", {"workers": 0}, "execution.workers = 0", "or equal to 1"),
    at("execution", {"clients_per_gpu": 0}, "execution.clients_per_gpu = 0"),
    at("execution", {"workers_per_gpu": 0}, "execution.workers_per_gpu = 0"),
    at("execution", {"timeout": 0}, "execution.timeout = 0", "or equal to 1"),
    at("targets", [], "config.yaml", "targets = []", "at least 1"),
    at("e:scales", {}, "experiments.e.scales = {}", "at least 1"),
    at("e:grid/seed", [], "grid.seed = []", "at least 1"),
    at("e:scales/default", {"grid": {"seed": []}}, "scales.default.grid.seed = []", "at least 1"),
    # unknown names
    *(at(f"b:{key}", "nonsuch", f"{key} = 'nonsuch'", known) for key, known in CHOICES.items()),
    *(method({key: "nonsuch"}, f"{key} = 'nonsuch'", known) for key, known in PARTS.items()),
    at("b:client/schedule", "linear", "client.schedule = 'linear'", "'constant', 'step', 'cosine'"),
    at("e:grid/method", ["fedsgd"], "method = 'fedsgd'", "unknown; did you mean 'fedsdd'"),
    Bad(
        ("method = 'fedsgd'", "did you mean 'fedsdd'"),
        {"e:grid": {"seed": [0]}, "b:method": "fedsgd"},
    ),
    at("targets", ["f"], "config.yaml", "targets = 'f'", "use one of e"),
    at("targets", ["e/mini"], "targets = 'e/mini'", "use one of e"),
    at("b:client/optimiser", "lion", "'lion'", "'sgd' or 'adam'"),
    at("b:client/augmentation", "mixup", "'mixup'", "'crop_flip'"),
    at("b:model", {"resnet8": {"norm": "layer"}}, "model.norm = 'layer'", "'group'"),
    at("b:aggregation", {"weights": "all"}, "aggregation.weights = 'all'"),
    at("b:role", "train", "role = 'train'", "'test', 'test_own' or 'val"),
    method({"training": "solo"}, "training = 'solo'", "'core' or 'one_shot'"),
    method(
        {
            "evaluate": "clients",
            "rounds": 4,
            "evaluate_every": 2,
            "withdraw_stale": True,
            "staleness": {"cyclic": {"delays": [0, 1]}},
        },
        "evaluate = 'clients'",
        "all participants are absent in round 2",
    ),
    at(
        "b:start_of",
        "server",
        "start_of = server: needs server_model = true, a model that no client trains, "
        "not server_model = false",
        "needs server_model = true",
    ),
    method({"training": "core"}, "core = null", "training = core needs one"),
    method(
        {"public": "core", "ensemble": "clients", "global": "basic"},
        "core = null",
        "public = core needs one",
    ),
    at("b:core", {"samples": "half"}, "core.samples = 'half'", "'share', 'stratified' or 'all'"),
    at("b:on_divergence", "go", "on_divergence = 'go'", "'stop' or 'drop'"),
    at("e:table", {"metric": "f1"}, "table.metric = 'f1'", "top1_accuracy"),
    at("b:numerics", {"device": "tpu"}, "numerics.device = 'tpu'", "cuda"),
    at("b:numerics", {"precision": "fp64"}, "numerics.precision = 'fp64'", "'bf16' or 'tf32'"),
    at("b:numerics", {"memory_format": "nhwc"}, "numerics.memory_format = 'nhwc'", "channels_last"),
    at("b:numerics", {"cuda_graphs": 1}, "numerics.cuda_graphs = 1", "boolean"),
    at("b:numerics", {"compile": 1}, "numerics.compile = 1", "boolean"),
    at("b:aggregation", {"server_optimizer": "lion"}, "server_optimizer = 'lion'", "'yogi'"),
    at("b:aggregation", {"server_optimizer": None}, "aggregation.server_optimizer = null", "name"),
    at(
        "b:aggregation",
        {"server_optimizer": {"adam": {"beta": 0.9}}},
        "aggregation.server_optimizer.beta = 0.9",
        "unknown key",
    ),
    at(
        "b:aggregation",
        {"server_optimizer": {"yogi": {"beta2": 1.0}}},
        "aggregation.server_optimizer.beta2 = 1.0",
        "less than 1",
    ),
    at(
        "b:aggregation",
        {"server_optimizer": {"adam": {"epsilon": 0}}},
        "aggregation.server_optimizer.epsilon = 0",
        "greater than 0",
    ),
    at(
        "b:aggregation",
        {"server_optimizer": {"momentum": {"learning_rate": 0}}},
        "aggregation.server_optimizer.learning_rate = 0",
        "greater than 0",
    ),
    at("b:compression", {"stc": {"sparsity": 1.0}}, "compression.sparsity = 1.0"),
    at("b:compression", {"stc": {"bits": 8}}, "compression.bits = 8", "must be 16 or 32"),
    at("b:compression", {"stc": {"residual": True}}, "compression.residual = True", "unknown key"),
    at("b:compression", 4, "compression = 4", "name"),
    at("b:staleness", {"cyclic": {"delays": [0, -1]}}, "staleness.delays.1 = -1", "equal to 0"),
    at("b:staleness", {"cyclic": {"delays": []}}, "staleness.delays", "at least 1"),
    at("b:staleness", {"cyclic": {"delays": [0.5]}}, "staleness.delays.0 = 0.5", "integer"),
    at(
        "b:staleness",
        {"random": {"probabilities": [0.5, 0.4]}},
        "staleness: probabilities: sum to 0.9: must sum to 1",
    ),
    at(
        "b:staleness",
        {"random": {"probabilities": [1.5, -0.5]}},
        "staleness.probabilities.0 = 1.5",
        "less than or equal to 1",
        lines=2,
    ),
    at("b:staleness", "late", "staleness = 'late'", "'cyclic'", "'never'"),
    at("b:withdraw_stale", 1, "withdraw_stale = 1", "boolean"),
    at("b:participants", 11, "participants = 11: at most clients = 10"),
    at("b:aggregation", {"discount": "linear"}, "aggregation.discount = 'linear'", "'polynomial'"),
    at(
        "b:aggregation",
        {"discount": {"polynomial": {"exponent": -1.0}}},
        "aggregation.discount.exponent = -1.0",
        "greater than 0",
    ),
    at("b:aggregation", {"stale": "both"}, "aggregation.stale = 'both'", "'models' or 'changes'"),
    # what does not fit together
    method(
        {"local": "scaffold", "staleness": "never"},
        "staleness = never: needs rounds that go on from global models alone, not "
        "local = scaffold, which keeps state between rounds",
    ),
    method(
        {"local": "moon", "staleness": "never", "model": {"cnn_small": {"head": {}}}},
        "staleness = never: needs rounds that go on from global models alone, not "
        "local = moon, which keeps state between rounds",
    ),
    method(
        {"local": "digest", "ensemble": "clients", "staleness": "never"},
        "staleness = never: needs clients that exchange weights, not local = digest, "
        "whose clients send no weights",
    ),
    method(
        {
            "local": "fedavg",
            "staleness": "never",
            "model": {"cnn_small": {"norm": "batch"}},
            "aggregation": {"batch_norm": "local"},
        },
        "staleness = never: needs rounds that go on from global models alone, not "
        "aggregation.batch_norm = local, which clients keep",
    ),
    method(
        {
            "local": "fedavg",
            "staleness": "never",
            "model": {"cnn_small": {"head": {}}},
            "global_models": 2,
            "server_model": True,
            "head_sharing": True,
        },
        "staleness = never: needs rounds that go on from global models alone, not "
        "head_sharing = true, which reaches all models in every round",
    ),
    Bad(
        (
            "server.drop_worst = as_released: needs the plain average of clients' models",
            "not aggregation.discount = polynomial, for which it must be constant",
        ),
        {
            "b:server/drop_worst": "as_released",
            "b:data": {"digits": {"server_validation": 9}},
            "b:aggregation": {"discount": "polynomial"},
        },
    ),
    at(
        "b:aggregation",
        {"server_optimizer": "adam", "learning_rate": 0.5},
        "aggregation: learning_rate = 0.5",
        "must be 1 with server_optimizer = adam",
    ),
    method({"local": "fednova", "client": {"optimiser": "adam"}}, "local = fednova", "sgd"),
    method(
        {"local": "moon", "model": "logistic_regression"},
        "local = moon: needs a model with a head, not model = logistic_regression, "
        "which takes none",
    ),
    method(
        {"local": "moon", "model": {"cnn_small": {"head": {}}}, "numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not local = moon, "
        "whose loss is its own and has no compiled code",
    ),
    method(
        {"local": "fedntd", "numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not local = fedntd, "
        "whose loss is its own and has no compiled code",
    ),
    method({"local": {"fedlc": {"tau": -1}}}, "local.tau = -1", "or equal to 0"),
    method({"local": {"fedgkd": {"models": 0}}}, "local.models = 0", "or equal to 1"),
    method(
        {"local": {"fedgkd": {"teacher": "vote"}}},
        "local = fedgkd: needs data.server_validation of at least 1 sample, to judge "
        "models by, not data.server_validation = 0",
    ),
    method(
        {
            "local": "fedgkd",
            "model": {"cnn_small": {"norm": "batch"}},
            "aggregation": {"batch_norm": "local"},
        },
        "local = fedgkd: needs global models with running statistics, not "
        "aggregation.batch_norm = local, which clients keep",
    ),
    method(
        {
            "local": {"digest": {"teacher": "server"}},
            "distillation": "fedgems",
            "client_groups": "drawn",
            "server_model": True,
            "global_models": 2,
            "global": "designated",
        },
        "distillation = fedgems: needs public = core, whose samples are labelled, not "
        "public = held_out",
    ),
    method(
        {"distillation": "fedgems"},
        "distillation = fedgems: needs public = core, whose samples are labelled, not "
        "public = held_out",
    ),
    method(
        ONE_SHOT | {"aggregator": "averaging", "distillation": "fedgems"},
        "distillation = 'fedgems': unknown; use 'kl'",
        name="own",
    ),
    method(
        {"local": {"digest": {"teacher": "server"}}, "global": None},
        "local.teacher = server: needs distillation = fedgems, not distillation = kl",
    ),
    method(
        {"local": {"digest": {"teacher": "server", "cache": {}}}, "distillation": "fedgems"},
        "local: cache: not with teacher = 'server'",
    ),
    method(
        {"distillation": {"fedgems": {"epsilon": 1.5}}}, "distillation.epsilon = 1.5", "equal to 1"
    ),
    method(
        {"generator": "fedftg", "public": "cifar10"},
        "generator = fedftg: needs public = generated, not public = cifar10",
    ),
    method(
        {"public": "generated"},
        "generator = null: public = generated needs one",
        "fedftg in rounds",
    ),
    method(
        FED_FTG | {"data": "heart_disease", "clients": 4, "model": "mlp"},
        "generator = fedftg: needs samples that are images",
        "not data = heart_disease, whose samples are features",
    ),
    method(
        FED_FTG | {"server": {"steps": None, "epochs": 2}},
        "generator = fedftg: needs server.steps, not server.steps = null",
    ),
    method(
        FED_FTG | {"ensemble": "aggregated"},
        "generator = fedftg: needs ensemble = clients with uniform weights, of logits, "
        "not ensemble = aggregated",
    ),
    method(
        FED_FTG | {"ensemble": {"clients": {"weights": "samples"}}},
        "generator = fedftg: needs ensemble = clients with uniform weights, of logits, "
        "not ensemble.weights = samples",
    ),
    method(
        FED_FTG | {"distillation": "l1"},
        "generator = fedftg: needs distillation = kl, not distillation = l1",
    ),
    method(
        FED_FTG | {"server": {"samples_a_round": 10}},
        "server.samples_a_round = 10: needs rounds of public images, not generator = "
        "fedftg, whose student learns with it, in steps of its own",
    ),
    method(
        FED_FTG | {"server": {"swa": {"every": 2}}},
        "server.swa: needs a student of the server, trained by itself, not generator = "
        "fedftg, whose student learns with it, in steps of its own",
    ),
    method(
        FED_FTG | {"numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not generator = "
        "fedftg, whose student learns with it, in steps of its own",
    ),
    method(
        FED_FTG
        | {"model": {"cnn_small": {"norm": "batch"}}, "aggregation": {"batch_norm": "re_estimate"}},
        "aggregation.batch_norm = re_estimate: needs public images that are there "
        "before students learn, not generator = fedftg, whose student learns with "
        "it, in steps of its own",
    ),
    method(
        FED_FTG
        | {"local": "digest", "client_groups": "drawn", "server_model": True, "global_models": 2},
        "local = digest: needs public images that are there before students learn, not "
        "generator = fedftg, whose student learns with it, in steps of its own",
    ),
    method({"generator": "dense", "public": "generated"}, "generator = 'dense'", "'fedftg'"),
    one_shot({"generator": "fedftg", "distillation": "kl"}, "generator = 'fedftg'", "'cvae'"),
    method(
        {"ensemble": "odds", "data": "heart_disease", "clients": 4, "model": "mlp"},
        "ensemble = odds: needs samples that are images",
        "not data = heart_disease, whose samples are features",
    ),
    method(
        {"ensemble": "odds", "local": "digest", "global": None},
        "local = digest: needs ensemble = clients, not ensemble = odds, whose odds are "
        "of public images as they are",
    ),
    method(
        {"ensemble": "odds", "server": {"teacher_images": "augmented", "augmentation": "flip"}},
        "server.teacher_images = augmented: needs teachers in rounds that look at a "
        "student's public images, not ensemble = odds, whose odds are of public images "
        "as they are",
    ),
    method(
        FED_FTG | {"ensemble": "odds"},
        "generator = fedftg: needs ensemble = clients with uniform weights, of logits, "
        "not ensemble = odds, whose odds are of public images as they are",
    ),
    method(
        {
            "ensemble": "odds",
            "data": {"digits": {"held_out": 100, "server_validation": 10}},
            "server": {"drop_worst": "as_published"},
        },
        "server.drop_worst = as_published: needs ensemble = clients, not ensemble = "
        "odds, whose odds are of public images as they are",
    ),
    method({"ensemble": "odds", "evaluate": "odds"}, "evaluate = 'odds'", "'clients'"),
    method(
        {"ensemble": {"odds": {"discriminator": {"epochs": 0}}}},
        "ensemble.discriminator.epochs = 0",
        "to 1",
    ),
    method(FED_FTG | {"generator": {"fedftg": {"steps": 0}}}, "generator.steps = 0", "to 1"),
    method({"local": {"digest": {"cache": {"duration": 0}}}}, "local.cache.duration = 0", "to 1"),
    method({"local": {"fedavg": {"cache": {}}}}, "local.cache = {}: unknown key"),
    method(
        {"local": "scaffold", "aggregation": {"rule": "median"}},
        "local = scaffold: needs aggregation.rule = average, not aggregation.rule = "
        "median, which is no average",
        name="own",
    ),
    method(
        {"local": "fednova", "aggregation": {"rule": "krum"}, "participants": 5, "clients": 5},
        "local = fednova: needs aggregation.rule = average, not aggregation.rule = "
        "krum, which is no average",
        name="own",
    ),
    method(
        {"aggregation": {"rule": "median"}},
        "aggregation.rule = median: needs clients that exchange weights, not local = "
        "digest, whose clients send no weights",
        name="fedmd",
    ),
    method(
        {"local": "fedavg", "aggregation": {"rule": {"krum": {"faulty": 9}}}},
        "aggregation.rule = 'krum'",
        "participants in a group",
        "at least 21",
        name="own",
    ),
    method(
        {"local": "fedavg", "aggregation": {"rule": {"trimmed_mean": {"trimmed": 0}}}},
        "aggregation.rule.trimmed = 0",
        "greater than or equal to 1",
        name="own",
    ),
    method(
        {"local": "fedavg", "aggregation": {"rule": "median", "discount": "polynomial"}},
        "aggregation.discount = polynomial: needs aggregation.rule = average, not "
        "aggregation.rule = median, which is no average",
        name="own",
    ),
    method(
        {
            "local": "fedavg",
            "aggregation": {"weights": "uniform"},
            "privacy": {"client": {"clip": 0.5, "noise": 1.0, "delta": 0.01}},
            "evaluate": "clients",
        },
        "method own",
        "evaluate = 'clients': must be global_model or aggregated with privacy.client",
        name="own",
    ),
    method(
        {"local": "fedavg", "aggregation": {"rule": "mode"}},
        "aggregation.rule = 'mode'",
        "'average', 'median', 'trimmed_mean', 'krum'",
        name="own",
    ),
    Bad(
        (
            "server.drop_worst = as_released: needs the plain average of clients' models",
            "not aggregation.rule = median, which is no average",
        ),
        {
            "b:server/drop_worst": "as_released",
            "b:data": {"digits": {"server_validation": 9}},
            "b:aggregation": {"rule": "median"},
        },
    ),
    Bad(
        (
            "server.drop_worst = as_released: needs the plain average of clients' models",
            "not aggregation.server_optimizer = yogi, for which it must be average",
        ),
        {
            "b:server/drop_worst": "as_released",
            "b:data": {"digits": {"server_validation": 9}},
            "b:aggregation": {"server_optimizer": "yogi"},
        },
    ),
    Bad(
        (
            "server.drop_worst = as_released: needs the plain average of clients' models",
            "not local = fednova, which takes no plain average",
        ),
        {
            "b:server/drop_worst": "as_released",
            "b:data": {"digits": {"server_validation": 9}},
            "e:methods": {"feddf": {"local": "fednova"}},
        },
    ),
    at(
        "b:compression",
        "stc",
        "compression.downstream = true",
        "compression.downstream = true: needs global models that are the old ones with "
        "averaged changes, not global = basic, whose students are trained further",
    ),
    at("b:numerics", {"precision": "tf32"}, "precision = 'tf32'", "only for device = cuda"),
    at("b:numerics", {"cuda_graphs": True}, "cuda_graphs = true", "only for device = cuda"),
    at("b:participants", 11, "participants = 11", "clients = 10"),
    method({"global_models": 5}, "participants = 4", "global_models = 5"),
    at("b:client/steps", 3, "client", "either epochs or steps"),
    at("b:client/epochs", REMOVED, "client", "either epochs or steps"),
    at("b:client/nesterov", True, "client", "nesterov = true", "> 0"),
    method({"local": "scaffold", "client": {"momentum": 0.9}}, "local = scaffold", "momentum = 0"),
    method({"local": "scaffold", "client": {"optimiser": "adam"}}, "local = scaffold", "sgd"),
    at("b:client/batches", "continued", "client: batches = 'continued': only with steps"),
    Bad(
        ("participants = 4: must be clients = 10", "client.batches = continued"),
        {"b:client/batches": "continued", "b:client/steps": 3, "b:client/epochs": REMOVED},
    ),
    at("b:client/batches", "fresh", "client.batches = 'fresh'", "'continued'"),
    at("b:data", {"digits": {"held_out": 0}}, "method feddf", "held_out = 0", "at least 1"),
    at("b:server", REMOVED, "method feddf", "server = null"),
    method({"ensemble": None}, "ensemble = null", "aggregated"),
    at("b:server/early_stopping", {}, "method feddf", "data.server_validation = 0"),
    at("b:server/drop_worst", "as_published", "data.server_validation = 0", "at least 1"),
    at("b:server/drop_worst", True, "server.drop_worst = True"),
    at("b:server/steps", REMOVED, "server: give either epochs or"),
    at("b:server/epochs", 3, "server: give either epochs or steps"),
    at(
        "b:server/labels",
        1.0,
        "server.labels = 1.0: needs labelled public samples, public = core or "
        "generated, not public = held_out",
        "held_out",
    ),
    at("b:server/buffer", {"refresh": "step"}, "refresh = 'step'"),
    at("b:server/buffer", {"weight": -1.0}, "server.buffer.weight"),
    at("b:server/moving_average", {"decay": 1.5}, "server.moving_average.decay = 1.5"),
    at_all(
        {"b:server/moving_average": {}, "b:server/swa": {"every": 1}},
        "server: swa and moving_average: give one",
    ),
    at(
        "b:server/teacher_images",
        "augmented",
        "server: teacher_images = 'augmented'",
        "nothing is augmented",
    ),
    Bad(
        (
            "server.teacher_images = augmented: needs members that compute logits of any "
            "images, all of which teach, not ensemble = bayesian, whose members are drawn "
            "as logits",
            "drawn",
        ),
        ASKED | {"e:methods": {"feddf": {"ensemble": "bayesian"}}},
    ),
    Bad(
        (
            "server.teacher_images = augmented: needs members that compute logits of any "
            "images, all of which teach, not server.drop_worst = as_released, which "
            "chooses among logits",
        ),
        ASKED | {"b:server/drop_worst": "as_released", "b:data": JUDGING},
    ),
    Bad(
        (
            "numerics.cuda_graphs = true: needs training steps that can be recorded, not "
            "server.teacher_images = augmented, whose ensemble is weighted on the CPU",
        ),
        ASKED | {"b:numerics": {"cuda_graphs": True, "device": "cuda"}},
    ),
    at_all(
        {"b:server/buffer": {}, "b:numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not server.buffer, "
        "whose sum of losses is not compiled",
    ),
    at("b:server/factor_transfer", {}, "model = 'cnn_small': server.factor_transfer needs"),
    method(
        {"ensemble": "bayesian", "server": {"factor_transfer": {}}, "model": "resnet8"},
        "server.factor_transfer: needs members that compute logits of any images, all "
        "of which teach, not ensemble = bayesian, whose members are drawn as logits",
    ),
    at("b:server/factor_transfer", {"rate": 0.0}, "server.factor_transfer.rate = 0.0"),
    method({"global": {"basic": {"starts_from": "initial"}}}, "global.starts_from = 'initial'"),
    Bad(
        (
            "server.drop_worst = as_released: needs the plain average of clients' models, "
            "not global.starts_from = previous, which averages nobody",
        ),
        {
            "b:server/drop_worst": "as_released",
            "b:data": JUDGING,
            "e:methods": {"feddf": {"global": {"basic": {"starts_from": "previous"}}}},
        },
    ),
    at("b:server/swa", {"start": 20}, "server: swa.start = 20", "at most steps - swa.every = -5"),
    method({"ensemble": {"bayesian": {"distribution": "laplace"}}}, "'laplace'", "'dirichlet'"),
    method(
        {"ensemble": {"bayesian": {"distribution": "dirichlet", "variant": "as_released"}}},
        "ensemble: variant = 'as_released'",
        "only for distribution = gaussian",
    ),
    method({"ensemble": {"clients": {"average": "votes"}}}, "average = 'votes'", "'probabilities'"),
    method({"architectures": ["cnn_small", "resnet9"]}, "architectures.1 = 'resnet9'", "'resnet8'"),
    method(
        {"architectures": ["cnn_small", {"resnet8": {"norm": "layer"}}], "global_models": 2},
        "architectures.1.norm = 'layer'",
        "'group'",
    ),
    at("b:client/schedule", {"cyclical": {"cycle": 0}}, "schedule.cycle = 0"),
    Bad(("validation = 0", "role = 'validation'"), {"b:role": "validation", "b:validation": 0.0}),
    at("b:evaluate_client", 3, "evaluate_client = 3: only for training = alone, not federated"),
    method(
        {"training": "alone", "evaluate_client": 10},
        "evaluate_client = 10: at most 9",
        "clients = 10",
        name="own",
    ),
    at(
        "e:scales/default",
        {"cells": [{"at": {"partition.alpa": 0.1}, "settings": {}}]},
        "e/default: cells.0.at: partition.alpa: no axis of e; use one of method",
    ),
    at(
        "e:scales/default",
        {"cells": [{"at": {"method": ["fedavg", "fedprox"]}, "settings": {}}]},
        "cells.0.at: method = 'fedprox': no cell of e",
        "use one of fedavg, feddf",
    ),
    at(
        "e:scales/default",
        {"cells": [{"at": {"method": "fedavg"}, "settings": {"client": {"rate": 1.0}}}]},
        "client.rate = 1.0",
        "unknown key",
    ),
    at("b:role", "test_own", "role = 'test_own': only for data = heart_disease", "data = digits"),
    at("b:data", "heart_disease", "model = 'cnn_small': takes images", "are features"),
    at("b:partition", "natural", "partition = natural: data = digits has no column of clients"),
    at_all(
        {
            "b:data": {"table": {"folder": "mine"}},
            "b:model": "mlp",
            "b:partition": "natural",
            "b:clients": REMOVED,
        },
        "partition = natural: data = table has no column of clients",
        "data.client_column",
    ),
    at_all(
        {
            "b:data": {"table": {"folder": "not_there", "client_column": "a"}},
            "b:model": "mlp",
            "b:partition": "natural",
            "b:clients": REMOVED,
        },
        "clients: not given",
    ),
    at(
        "b:data",
        {"table": {"folder": "mine", "features": ["a"], "drop": ["b"]}},
        "features and drop: give one of them",
    ),
    at(
        "b:data", {"table": {"folder": "mine"}}, "model = 'cnn_small': takes images", "are features"
    ),
    at("b:data", {"heart_disease": {"held_out": 9}}, "data.held_out = 9", "unknown key"),
    at(
        "b:data",
        {"svhn": {"train_size": 9, "train_fraction": 0.1}},
        "data: train_size and train_fraction: give one",
    ),
    at("b:data", {"svhn": {"train_fraction": 1.5}}, "train_fraction = 1.5", "to 1"),
    at(
        "b:data",
        {"cifar10": {"division": [7, 1, 2], "held_out": 9}},
        "data: held_out = 9: not with division, whose second share is held out",
    ),
    at("b:data", {"cifar10": {"division": [0, 1, 2]}}, "data.division.0 = 0", "equal to 1"),
    at("b:data", {"cifar10": {"division": [0.7, 1, 2]}}, "data.division.0 = 0.7", "integer"),
    at("b:data", {"cifar10": {"division": [4, 1]}}, "data.division.2: missing"),
    at("b:data", {"digits": {"division": [7, 1, 2]}}, "data.division = [7, 1, 2]: unknown key"),
    at("b:data", {"digits": {"held_out_augmentation": "mixup"}}, "'mixup'", "'crop_flip'"),
    at("b:data", {"ag_news": {"held_out_augmentation": "flip"}}, "unknown key"),
    at("b:data", {"cifar10": {"extra": True}}, "data: extra = true: only for svhn", "cifar10"),
    at("b:data", "camelyon16", "model = 'cnn_small': takes images", "camelyon16 are bags"),
    at("b:model", "deep_mil", "model = 'deep_mil': takes bags", "digits are images"),
    at("b:data", {"camelyon16": {"max_tiles": 0}}, "data.max_tiles = 0", "or equal to 1"),
    at("b:data", {"isic2019": {"crop": 0}}, "data.crop = 0", "equal to 1"),
    at("b:data", "ag_news", "model = 'cnn_small': takes images", "ag_news are tokens"),
    at("b:data", {"ag_news": {"length": 2}}, "data.length = 2", "equal to 3"),
    Bad(
        ("model.vocabulary = 100: must be at least data.vocabulary_size = 30522",),
        {"b:data": "ag_news", "b:model": {"distilbert": {"vocabulary": 100}}},
    ),
    at("b:data", "sent140", "model = 'cnn_small': takes images", "sent140 are tokens"),
    at(
        "b:data",
        {"sent140": {"held_out": 0.6, "server_validation": 0.5}},
        "data: held_out + server_validation = 1.1: must be below 1",
    ),
    at("b:data", {"sent140": {"test": 1.0}}, "data.test = 1.0", "less than 1"),
    at("b:model", {"distilbert": {"heads": 7}}, "model: width = 768: must be a multiple of heads"),
    at("b:model", {"efficientnet_b0": {"weights": {"file": "a.pth"}}}, "weights.sha256: missing"),
    at(
        "b:model",
        {"efficientnet_b0": {"weights": {"file": "a.pth", "sha256": "none"}}},
        "model.weights.sha256 = 'none'",
        "must be 8 to 64 hexadecimal digits",
    ),
    at("b:model", {"logistic_regression": {"outputs": 2}}, "model.outputs = 2", "must be 1"),
    # tables that could not be made
    at("e:table", {"metric": "added_s"}, "table.metric = 'added_s'", "results = [round_times]"),
    Bad(
        ("table.metric = 'round_s'", "neither table nor figures, nor communication"),
        {"e:table": {"metric": "round_s"}, "e:results": ["round_times", "figures"]},
    ),
    at("e:results", ["costs"], "results", "costs needs communication"),
    at("e:table", {"rows": ["metod"]}, "table", "metod"),
    at("e:table", {"rows": ["seed"]}, "table", "seed"),
    at("e:grid/partition.alpha", [0.1, 1.0], "table", "partition.alpha"),
    at("e:grid", {"method": {"ours": "fedavg"}}, "grid.method: must be a list; names are"),
    at("e:grid", {"seed": {"first": 0}}, "e/default: grid.seed: must be a list; names are"),
    at("e:implies", {"data": {"digits": {}}}, "e: implies.data: must be an axis of the grid"),
    # results
    at("e:results", ["tables"], "results.0 = 'tables': must be 'table', 'figures', "),
    at("e:simulation", {"distillation": -1}, "simulation.distillation = -1: must be greater"),
    # names that could not be files
    at("e:scales", {"v1.0": None, "default": None}, "scales", "v1.0", "letters, digits, _ and -"),
    at("b:numerics", {"device": "gpu"}, "device = 'gpu': must be auto, cpu, cuda or cuda:NUMBER"),
    at("e:scales", {"a/b": None, "default": None}, "scales", "a/b"),
    at("experiments/my e", CONFIG["experiments"]["e"], "my e"),
    # several faults at once
    Bad(("clients = 0", "validation = 2"), {"b:clients": 0, "b:validation": 2}, lines=2),
    # files
    in_file("title: [a\nb: {", "not valid YAML", "line 2"),
    in_file(
        "title: F\nbase:\n  rounds: 8\n  seed: 0\n  rounds: 9\nscales: {default: {}}\n",
        "line 5: duplicate key 'rounds' (first used in line 3)",
    ),
    in_file("title:\n\t- a", "not valid YAML", "line 2"),
    in_file("- a\n", "must be a mapping"),
    in_file("", "must be a mapping"),
    in_file("title: \xe9".encode("latin-1"), "UTF-8"),
    in_file("title: A\nbase: {}\nscales: {a: }\ngird: {}", "gird = {}", "unknown key"),
    in_file(
        "title: A\nbase: {}\nscales: {a: }", "experiments.e", "rename", name="experiments/e.yaml"
    ),
    Bad(
        ("f/mini", "participants = 99", "clients = 10"),
        files={
            "experiments/f.yaml": json.dumps(
                CONFIG["experiments"]["e"]
                | {"scales": {"full": None, "mini": {"base": {"participants": 99}}}}
            )
        },
    ),
    Bad(
        ("/f.yaml: like = 'ee'", "unknown; did you mean 'e'?"),
        {"targets": ["f"]},
        {"experiments/f.yaml": "title: A\nlike: ee\nscales: {default: }"},
    ),
    Bad(
        ("f: like = 'f': is like itself",),
        files={"experiments/f.yaml": "title: A\nlike: f\nscales: {default: }"},
    ),
    Bad(
        ("g: like = 'f': is like itself",),
        files={
            "experiments/f.yaml": "title: A\nlike: g\nscales: {default: }",
            "experiments/g.yaml": "title: A\nlike: f\nscales: {default: }",
        },
    ),
    Bad(
        ("/g.yaml: like = 'nonsuch': unknown; see `fedstage list experiments`",),
        files={
            "experiments/f.yaml": "title: A\nlike: g\nscales: {default: }",
            "experiments/g.yaml": "title: A\nlike: nonsuch\nscales: {default: }",
        },
    ),
    in_file(None, "o such file", name="methods.yaml"),
    in_file("fedavg: {", "not valid YAML", name="methods.yaml"),
    in_file(
        "fedavg: {local: fedavg}\nfedavg: {local: scaffold}",
        "line 2: duplicate key 'fedavg' (first used in line 1)",
        name="methods.yaml",
    ),
    in_file("- fedavg", "must be a mapping", name="methods.yaml"),
    in_file("fedavg:\nfeddf: {}", "fedavg", name="methods.yaml"),
    in_file("fedavg: local\nfeddf: {}", "'local'", name="methods.yaml"),
    Bad(
        ("own", "lokal = 'fedavg'", "unknown key"),
        files={"methods.yaml": METHODS_FILE.read_text() + "own: {lokal: fedavg}\n"},
    ),
]


def fault_of(case, folder):
    """Return the message that a configuration ends with; `folder` becomes its `workflow`."""
    (folder / "experiments").mkdir(parents=True)
    for name, content in {"methods.yaml": METHODS_FILE.read_text(), **case.files}.items():
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    config = copy.deepcopy(CONFIG)
    for path, value in case.changes.items():
        set_at(config, path, value)
    with pytest.raises(FedstageError) as caught:
        load_catalogue(config, folder)
    return str(caught.value)


def test_bad_configuration_is_told_in_one_line(tmp_path):
    for number, case in enumerate(BAD_CONFIGURATIONS):
        folder = tmp_path / str(number)
        message = fault_of(case, folder)
        assert len(message.splitlines()) == case.lines, message
        assert message.startswith(
            ("config.yaml: ", "e/", "e: ", "f", "g", "experiments.", str(folder))
        )
        assert [part for part in case.told if part not in message] == [], message
        assert [word for word in JARGON if word in message] == [], message


def test_the_configuration_of_these_cases_is_good_without_its_fault(tmp_path):
    (tmp_path / "methods.yaml").write_text(METHODS_FILE.read_text())
    assert len(load_catalogue(CONFIG, tmp_path).runs["e", "default"]) == 2


# --- artefacts ------------------------------------------------------------------------------------

SETTINGS = {
    "data": {"name": "digits"},
    "clients": 4,
    "partition": {"name": "iid"},
    "participants": 2,
    "model": {"name": "logistic_regression"},
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "numerics": {"device": "cpu"},
    "seed": 0,
}
PARTITION = {"clients": 4, "partition": {"name": "iid"}, "validation": 0.0, "seed": 0}
INITIAL = {"model": SETTINGS["model"], "seed": 0}
PLAN = {"clients": 4, "participants": 2, "participation": "uniform", "seed": 0}
INFO = {"classes": 10, "shape": [1, 4, 4], "mean": [0.5], "std": [0.25]}
SAMPLES = 60

COMMANDS = {
    "partition": "--settings {partition} --train train.safetensors --output new"
    " --histogram new_histogram",
    "participation": "--settings {plan} --first 1 --last 100 --output new",
    "initial_model": "--settings {initial} --group 0 --info info.json --output new",
    "local_training": "--recipe recipe.yaml --round 1 --group 0 --participant 0"
    " --data train.safetensors --info info.json --clients clients.parquet"
    " --participation participation.parquet"
    " --start start.safetensors --state --output new",
    "aggregation": "--recipe recipe.yaml --info info.json --start start.safetensors"
    " --updates participant_0.safetensors participant_1.safetensors --state --output new"
    " --participants new_participants",
    "dataset": "--settings {digits} --train new --test new_test --held-out new_held_out"
    " --info new_info",
}


def arguments_of(stage, changes):
    """Return a stage's arguments; `changes` gives options another value."""
    texts = {"partition": PARTITION, "initial": INITIAL, "digits": SETTINGS["data"]}
    texts["plan"] = PLAN
    quoted = {name: shlex.quote(json.dumps(text)) for name, text in texts.items()}
    arguments = shlex.split(COMMANDS[stage].format(**quoted))
    for option, value in changes.items():
        arguments[arguments.index(option) + 1] = value
    return [stage, *arguments]


def run(stage, **changes):
    assert main(arguments_of(stage, {f"--{name}": value for name, value in changes.items()})) == 0


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with all files that the commands above read."""
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        generator = torch.Generator().manual_seed(0)
        images = torch.randint(256, (SAMPLES, 1, 4, 4), generator=generator).to(torch.uint8)
        labels = torch.arange(SAMPLES) % 10
        save_tensors("train.safetensors", {"images": images, "labels": labels})
        save_json("info.json", INFO)
        assert main(["recipe", "--settings", json.dumps(SETTINGS), "--output", "recipe.yaml"]) == 0
        run("partition", output="clients.parquet")
        run("participation", output="participation.parquet")
        run("initial_model", output="start.safetensors")
        for participant in "01":
            run(
                "local_training",
                participant=participant,
                output=f"participant_{participant}.safetensors",
            )
        Path("new_histogram").unlink()
    return folder


@pytest.fixture
def folder(good, tmp_path, monkeypatch):
    """A copy of the good files to damage, as the working directory."""
    for path in good.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDSTAGE_DATA", raising=False)
    return tmp_path


def truncate(path):
    path.write_bytes(path.read_bytes()[:-3])


def alter_tensors(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def alter_table(path):
    """Flip a bit of the first column's values."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    raw = bytearray(path.read_bytes())
    raw[min(starts) + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(raw)


def delete(path):
    path.unlink()


def write(content):
    return lambda path: path.write_text(content)


def alter_recipe(path):
    text = path.read_text()
    assert "clients: 4" in text
    path.write_text(text.replace("clients: 4", "clients: 5"))


def write_schema_99(path):
    save_json(path, {"schema": 99, "settings": {}})  # JSON is YAML, too


def write_wrong_recipe(path):
    settings = json.dumps(SETTINGS | {"clients": 0})
    assert main(["recipe", "--settings", settings, "--output", str(path)]) == 0


def weigh_two_classes(path):
    client = SETTINGS["client"] | {"loss": {"focal": {"class_weights": [1.0, 2.0]}}}
    settings = json.dumps(SETTINGS | {"client": client})
    assert main(["recipe", "--settings", settings, "--output", str(path)]) == 0


def relabel(path):
    save_tensors(path, {"images": torch.zeros(SAMPLES, 1, 4, 4, dtype=torch.uint8)})


def refill(path):
    save_tensors(path, {"weight": torch.zeros(3)})


@dataclass(frozen=True)
class Damage:
    """A stage that meets a damaged file, or settings that its data cannot meet."""

    stage: str
    told: tuple[str, ...]
    file: str | None = None
    how: Any = None
    options: dict[str, str] = field(default_factory=dict)


def damaged(stage, file, how, *told):
    return Damage(stage, (file, *told), file, how)


def asked(stage, option, value, *told):
    text = value if isinstance(value, str) else json.dumps(value)
    return Damage(stage, told, options={option: text})


def divided(*told, **changes):
    return asked("partition", "--settings", PARTITION | changes, *told)


def dirichlet(**settings):
    return {"partition": {"dirichlet": {"alpha": 0.1, **settings}}}


DAMAGED = "truncated or altered"
BAD_ARTEFACTS = [
    damaged("partition", "train.safetensors", truncate, DAMAGED),
    damaged("local_training", "train.safetensors", alter_tensors, DAMAGED),
    damaged("partition", "train.safetensors", delete, "o such file"),
    damaged("partition", "train.safetensors", relabel, "labels"),
    damaged("local_training", "clients.parquet", truncate, DAMAGED),
    damaged("local_training", "clients.parquet", alter_table, DAMAGED),
    damaged("local_training", "clients.parquet", delete, "o such file"),
    damaged("local_training", "participation.parquet", alter_table, DAMAGED),
    damaged("local_training", "clients.parquet", write("a,b"), DAMAGED),
    damaged("local_training", "start.safetensors", truncate, DAMAGED),
    damaged("local_training", "start.safetensors", delete, "o such file"),
    damaged("local_training", "start.safetensors", refill, "does not fit"),
    damaged("aggregation", "participant_1.safetensors", truncate, DAMAGED),
    damaged("aggregation", "participant_0.safetensors", alter_tensors, DAMAGED),
    damaged("aggregation", "participant_1.safetensors", delete, "o such file"),
    damaged("initial_model", "info.json", truncate, DAMAGED, "not JSON"),
    damaged("initial_model", "info.json", write("[1]"), "must be a JSON object"),
    damaged("initial_model", "info.json", delete, "o such file"),
    damaged("local_training", "recipe.yaml", delete, "o such file"),
    damaged("local_training", "recipe.yaml", write("{"), "not valid YAML"),
    damaged("aggregation", "recipe.yaml", alter_recipe, "digest", "altered"),
    damaged("aggregation", "recipe.yaml", write_schema_99, "schema = 99", "reads"),
    damaged("aggregation", "recipe.yaml", write("{schema: 1, settings: {}}"), "schema = 1"),
    damaged("aggregation", "recipe.yaml", write_wrong_recipe, "clients = 0"),
    asked("local_training", "--participant", "2", "participation", "participant 2"),
    divided("clients = 61", "60 training samples", clients=61),
    divided("partition.min_samples = 16", "at most 15", **dirichlet(min_samples=16)),
    divided(
        "partition.max_draws = 3", "min_samples = 15", **dirichlet(min_samples=15, max_draws=3)
    ),
    divided("partition = natural", "client_column", partition="natural"),
    divided(
        "partition.classes_per_client = 3",
        "60",
        "90",
        partition={"shards": {"classes_per_client": 3}},
        clients=30,
    ),
    divided("partition.classes_per_client = 16", partition={"shards": {"classes_per_client": 16}}),
    divided("--settings", "clients = 0", clients=0),
    asked("partition", "--settings", "{", "--settings", "JSON"),
    asked(
        "participation", "--settings", PLAN | {"participants": 5}, "participants = 5", "clients = 4"
    ),
    asked("participation", "--settings", "[", "--settings = '['", "JSON"),
    asked("participation", "--last", "0", "last = 0", "first = 1"),
    asked(
        "initial_model", "--settings", {"model": "vgg", "seed": 0}, "model = 'vgg'", "'cnn_small'"
    ),
    asked("dataset", "--settings", {"name": "heart_disease"}, "heart_disease", "FEDSTAGE_DATA"),
    Damage(
        "dataset", ("camelyon16", "FEDSTAGE_DATA"), options={"--settings": '{"name": "camelyon16"}'}
    ),
    asked(
        "initial_model",
        "--settings",
        {"model": {"logistic_regression": {"outputs": 1}}, "seed": 0},
        "logistic_regression: outputs = 1: only for 2 classes",
        "has 10",
    ),
    Damage(
        "local_training",
        ("client.loss = focal: 2 class_weights", "each class", "has 10"),
        "recipe.yaml",
        weigh_two_classes,
    ),
    asked("dataset", "--settings", {"name": "svhn"}, "svhn", "FEDSTAGE_DATA"),
    asked("dataset", "--settings", {"name": "mnist"}, "'mnist'", "'cifar10'"),
    asked("dataset", "--settings", {"name": "digits", "test": 1797}, "test = 1797", "1796"),
]


def test_bad_artefact_ends_a_stage_with_1_and_one_line(good, folder, capsys):
    for case in BAD_ARTEFACTS:
        if case.file is not None:
            case.how(folder / case.file)
        assert main([*arguments_of(case.stage, case.options), "--log", "logs/a.log"]) == 1, case
        shown = capsys.readouterr()
        assert shown.out == ""
        (line,) = shown.err.splitlines()
        assert line.startswith(f"fedstage {case.stage}: ")
        assert [part for part in case.told if part not in line] == [], line
        assert [word for word in JARGON if word in line] == [], line
        assert Path("logs/a.log").read_text() == shown.err
        assert not list(folder.glob("*new*"))
        if case.file is not None:
            (folder / case.file).write_bytes((good / case.file).read_bytes())


@pytest.mark.parametrize("missing", ["missing", "info.json"], ids=["folder", "file"])
def test_missing_data_folder_is_named(folder, capsys, monkeypatch, missing):
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder / missing))
    assert main(arguments_of("dataset", {"--settings": '{"name": "svhn"}'})) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder / missing) in line
    assert "data_folder" in line


def test_missing_folder_of_images_is_named(folder, capsys, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder))
    settings = {"name": "parquet", "folder": "flowers"}
    assert main(arguments_of("dataset", {"--settings": json.dumps(settings)})) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder / "flowers") in line


def test_commands_of_these_cases_work_without_the_damage(folder):
    for stage in COMMANDS:
        assert main(arguments_of(stage, {})) == 0
        (folder / "new").unlink()
