"""Real runs that references are compared with: the same methods twice.

`exact`: one seed and a network, mostly all samples of a client or distillation in each step.
`drawn`: many seeds, a linear model, small batches.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from reference.network import (
    CLASSES,
    HeadedNetwork,
    LogisticRegression,
    LowerNetwork,
    PrototypeNetwork,
    SmallNetwork,
    UpperNetwork,
)
from reference.reading import Recorded
from safetensors.torch import load_file
from tests.workflow.conftest import Project

from fedstage.experiments.runs_file import read_runs_file
from fedstage.plan import data_files
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.protocol.groups import model_of
from fedstage.protocol.one_shot import client_model

ROUNDS, SEEDS, CLIENTS, PARTICIPANTS = 3, 8, 5, 3
ALL = 2000  # more samples than there are
BATCH = 16

TWO_MODELS = {"global_models": 2, "participants": 4}
AGGREGATOR = {"federated": {"rounds": 3, "steps": 2, "batch_size": ALL, "learning_rate": 0.5}}
DRAWS = {
    "ensemble": {"bayesian": {"samples": 3}},
    "server": {"swa": {"every": 3}, "schedule": {"cyclical": {"cycle": 3}}},
}


#: By this seed some participants of three rounds are a round late, and some two.
LATE = {"staleness": {"random": {"probabilities": [0.3, 0.4, 0.3]}}}
SMALL = {"cnn_small": {"width": 4, "hidden": 16}}
HEAD = {"head": {"hidden": 16, "width": 12, "relu": False}}
HEADED = {"model": {"cnn_small": SMALL["cnn_small"] | HEAD}}


def one_shot(rule, **changes):
    own = {"training": "one_shot", "rounds": 1, "aggregator": rule}
    return own | {"aggregator_training": AGGREGATOR} | changes


#: A larger model on the server, and clients of two architectures, all with Fed-ET's head. By this
#: seed there are clients of each, and in the first round none of the second takes part.
BODIES = ({"width": 6, "hidden": 20}, {"width": 4, "hidden": 16}, {"width": 2, "hidden": 12})
SERVED = {
    "seed": 7,
    "participation": "by_samples",
    "global_models": 3,
    "architectures": [{"cnn_small": own | {"head": {"hidden": 10, "width": 8}}} for own in BODIES],
}
SERVED["model"] = SERVED["architectures"][0]
#: As many architectures without a server's model.
MIXED = SERVED | {
    "global_models": 2,
    "architectures": SERVED["architectures"][1:],
    "model": SERVED["architectures"][1],
}

#: Norms of batches show whether models speak in evaluation mode. At larger rates so deep a network
#: makes more of the last digits than is allowed.
SPLIT = {
    "client": {"learning_rate": 0.05},
    "server": {"learning_rate": 0.01},
    "local": {"gkt": {"alpha": 0.7, "temperature": 2.0}},
    "global_models": 3,
    "architectures": [
        {"resnet_upper": {"blocks": 1, "width": 3, "norm": "none"}},
        {"resnet_lower": {"blocks": 1, "width": 3, "norm": "batch"}},
        {"resnet_lower": {"blocks": 2, "width": 3, "norm": "none"}},
    ],
}
SPLIT["model"] = SPLIT["architectures"][0]

RULES = {
    "fens_averaging": one_shot("averaging"),
    "fens_weighted": one_shot("weighted"),
    "fens_voting": one_shot("voting"),
    "fens_linear": one_shot("linear"),
    "fens_per_class": one_shot("per_class"),
    "fens_mlp": one_shot({"mlp": {"hidden": 8}}),
}
#: So much of each term that it counts. An attack takes signs of gradients, of which rounding turns
#: some: only the first step is the same. `test_fedov.py` has five, and the reasons.
TERMS = {"second": 0.7, "mixed": 0.5}
ATTACK = {"steps": 2, "step": 0.05}
UNKNOWN = {
    "fedov": {"unknown": TERMS | {"attack": None}},
    "fedov_attacked": {
        "like": "fedov", "unknown": TERMS | {"attack": ATTACK}, "client": {"epochs": 1},
    },
}  # fmt: skip
#: Images are large for eight layers without norms: small steps, few of them. The reference compares
#: each pair of images by itself: few images.
PROTOTYPES = {
    "fafi": {
        "data": {"digits": {"test": 500, "held_out": 900}},
        "model": {"resnet8": {"norm": "none"}},
        "prototypes": {"near": 0.5, "apart": 0.7, "alike": 0.3, "temperature": 0.5},
        "client": {"epochs": 3, "learning_rate": 0.02},
    },
}
#: Nothing moves, so that lambda_0, which is no artefact of `fens_mlp`, is one of this.
STANDING = {"federated": {"rounds": 1, "learning_rate": 1e-30, "server_optimizer": "average"}}
#: The core trains alone before the first round, on shares in which classes may be missing.
CORE_ROUNDS = 2
#: Batches of 60 in a permutation of the core's samples, by which the melting buffer is renewed.
MELTING_EPOCH = 3
CORE = {"core": {"classes": "some"}}
OF_CORE = CORE | {
    "start": "core",
    "participants": 1,
    "public": "core",
    "ensemble": "clients",
    "global": {"basic": {"starts_from": "previous"}},
}


#: At larger rates Adam, which divides by small gradients, makes more of the last digits.
IMAGES = {"latent": 6, "width": 4, "steps": 2, "student_steps": 2, "learning_rate": 0.001}
OF_IMAGES = {"batch_size": 12, "temperature": 2.0, "tau_squared": True, "steps": 5}


#: So many steps that the odds differ.
ODDS = {
    "generator": {"latent": 5, "width": 3, "steps": 6, "batch_size": 40, "learning_rate": 0.001},
    "discriminator": {"width": 3, "epochs": 3, "batch_size": 30, "learning_rate": 0.005},
    "average": "probabilities",
}


def taught_core(**server):
    """Return a method whose student learns labels and, by `server`, more than its edges say."""
    settings = {"labels": 1.0, "temperature": 2.0, "teacher_images": "original"} | server
    return OF_CORE | {"server": settings}


#: Krum needs five participants.
ROBUST = {"participants": CLIENTS}
#: For what steps, samples of a batch and samples of a client are not to be confused in.
IN_BATCHES = {"client": {"batch_size": 32, "learning_rate": 0.02}}
METHODS = {
    "fedavg": {},
    "fedprox": {"local": {"fedprox": {"mu": 0.1}}} | IN_BATCHES,
    "scaffold": IN_BATCHES,
    # By this seed some clients take part twice, so that their drifts are used.
    "feddyn": {"local": {"feddyn": {"alpha": 0.5}}} | IN_BATCHES,
    "feddc": {"local": {"feddc": {"alpha": 0.5}}} | IN_BATCHES,
    "fedadam": {},
    "fedyogi": {},
    "fednova": IN_BATCHES,
    "moon": HEADED,
    "fedntd": {"local": {"fedntd": {"beta": 0.7, "temperature": 2.0}}} | IN_BATCHES,
    "fedlc": {"local": {"fedlc": {"tau": 2.0}}} | IN_BATCHES,
    # So much that it counts, and by round 3 of two models.
    "fedgkd": {"local": {"fedgkd": {"gamma": 2.0, "models": 2, "temperature": 2.0}}} | IN_BATCHES,
    "fedgkd_last": {"local": {"fedgkd": {"temperature": 1.0}}},
    "fedgkd_vote": {
        "data": {"digits": {"server_validation": 60}},
        "local": {"fedgkd": {"gamma": 2.0}},
    },
    "fedavg_median": {"participants": 4},
    "fedavg_trimmed_mean": ROBUST,
    "krum": ROBUST,
    "multi_krum": ROBUST,
    "fedavg_stale": {"local": "fedavg"} | LATE,
    "fedasync": {"local": {"fedprox": {"mu": 0.1}}} | LATE,
    "fedbuff": LATE,
    "feddf": {},
    "fedgo": {"ensemble": {"odds": ODDS}},
    "fedbe_gaussian": DRAWS,
    "fedbe_dirichlet": DRAWS,
    # So much of each term that it counts.
    "fedftg": {"generator": {"fedftg": IMAGES | {"diversity": 3.0}}, "server": OF_IMAGES},
    "fedftg_as_released": {
        "generator": {"fedftg_as_released": IMAGES | {"classification": 0.5}},
        "server": OF_IMAGES,
    },
    # A decay that is not the default, so that it counts.
    "dfrd": {
        "generator": {"dfrd": IMAGES | {"diversity": 3.0, "decay": 0.7}},
        "server": OF_IMAGES,
    },
    "fedsdd_generated": {
        "like": "fedsdd_r2",
        "public": "generated",
        "generator": {"fedftg": IMAGES},
        "server": OF_IMAGES,
    },
    "fedsdd": TWO_MODELS,
    "fedsdd_r2": {"like": "fedsdd", "ensemble": {"aggregated": {"checkpoints": 2}}},
    "basic": {"like": "fedsdd_r2", "global": {"basic": {"warm_up": 1}}},
    "feddf_heterogeneous": MIXED,
    "feddf_server": SERVED,
    "takfl": MIXED
    | {
        "data": {"digits": {"server_validation": 60}},
        "server": {"buffer": {"weight": 0.7}, "task_arithmetic": {"parts": 4}},
    },
    "fedema_distill": {"server": {"moving_average": {"decay": 0.6}}},
    "fedema_distill_median": {"like": "fedema_distill"},
    # So much that it counts.
    "fedet": SERVED | {"distillation": {"fedet": {"diversity": 0.5}}},
    "fedet_uniform": {"like": "fedet"},
    "fedet_without_heads": {"like": "fedet"},
    "fedet_over_dissenters": {"like": "fedet"},
    "dsfl": SERVED,
    # Of labels of round 1 some are used in round 2, and all that are used in round 3 are too old.
    "scarlet": SERVED
    | {
        "local": {"digest": {"cache": {"duration": 2}}},
        "server": {"samples_a_round": 120},
    },
    "fedgems": SERVED | CORE | {"distillation": {"fedgems": {"epsilon": 0.4}}},
    "fedmd": MIXED,
    # So much that it counts.
    "fedproto": MIXED | {"local": {"fedproto": {"weight": 5.0}}},
    "fedtgp": MIXED | {"local": {"fedtgp": {"weight": 5.0, "steps": 7, "learning_rate": 0.1}}},
    "fedgen": HEADED
    | {"local": {"fedgen": {"weight": 2.0, "latent": 5, "steps": 9, "learning_rate": 0.001}}},
    "fedgkt": SPLIT,
    "core": CORE | {"training": "core", "rounds": CORE_ROUNDS},
    "kd": taught_core(),
    "bkd": taught_core(buffer={"weight": 0.8}),
    "melting": taught_core(buffer={"refresh": "epoch"}, steps=None, epochs=3, batch_size=60),
    "ema": taught_core(moving_average={"decay": 0.7}),
    "bkd_of_two": taught_core(buffer={"after": 1}) | {"participants": 2},
    **RULES,
    "mlp_before": one_shot({"mlp": {"hidden": 8}}, aggregator_training=STANDING),
    "fedkd": {"server": {"augmentation": "none"}},
    "fedet_os": {},
    **UNKNOWN,
    **PROTOTYPES,
}
EXACT = {
    "data": {"digits": {"test": 500, "held_out": 200}},
    "clients": CLIENTS,
    "partition": {"dirichlet": {"alpha": 0.5}},
    "aggregator_fraction": 0.2,
    "participants": PARTICIPANTS,
    "model": SMALL,
    "rounds": ROUNDS,
    "evaluate_every": ROUNDS,
    "client": {"epochs": 5, "batch_size": ALL, "learning_rate": 0.1},
    "server": {"steps": 6, "batch_size": ALL, "learning_rate": 0.05},
    "numerics": {"device": "cpu"},
    "seed": 0,
}

ROUNDS_OF_BATCHES = AGGREGATOR["federated"] | {"rounds": 40, "batch_size": BATCH}
ROUNDS_OF_BATCHES |= {"server_optimizer": {"adam": {"learning_rate": 0.03}}}
#: One-shot students learn from the clients' models that FENS has.
SHARED = {"local_fraction": None}
GROUPS_OF_CLIENTS = {
    "model": "logistic_regression", "architectures": [], "global_models": 2,
    "server": {"steps": 30, "batch_size": BATCH, "learning_rate": 0.1},
}  # fmt: skip
AND_A_SERVER = GROUPS_OF_CLIENTS | {"global_models": 3}
#: A method for each kind of draw; `exact` has what all others compute.
COMPARED = {
    "fedavg": {},
    "feddf": {},
    "fedbe_gaussian": {},
    "fedsdd_r2": {},
    "feddf_server": AND_A_SERVER,
    "scarlet": AND_A_SERVER,
    "fedmd": GROUPS_OF_CLIENTS,
    "fens_mlp": {"aggregator_training": {"federated": ROUNDS_OF_BATCHES}},
    "fedkd": SHARED | {"server": {"steps": 100, "learning_rate": 0.03}},
    "fedet_os": SHARED | {"server": {"steps": 100}},
}
DRAWN = {
    "model": "logistic_regression",
    "partition": {"dirichlet": {"alpha": 3.0}},
    "client": {"epochs": 2, "batch_size": BATCH, "learning_rate": 0.05},
    "server": {"steps": 12, "batch_size": BATCH},
}


def experiment(title, methods, grid, base, **more):
    made = {"title": title, "results": ["table"], "base": base, "methods": methods, "grid": grid}
    return made | {"scales": {"default": {}}} | more


CONFIG = {
    "targets": ["exact"],
    "execution": {"granularity": "segment"},
    "experiments": {
        "exact": experiment("Exact", METHODS, {"method": list(METHODS)}, EXACT),
        "drawn": experiment(
            "Drawn",
            COMPARED,
            {"method": list(COMPARED), "seed": list(range(SEEDS))},
            DRAWN,
            like="exact",
        ),
    },
}


PARTS = {"resnet_lower": LowerNetwork, "resnet_upper": UpperNetwork}


def networks_of(recipe):
    """Return a function for each group that makes the references' network of its model."""
    return [network_of(model_in(recipe, group)) for group in groups_of(recipe)]


def model_in(recipe, group):
    """Return the architecture of a group, or of the clients of one shot."""
    one_shot = not hasattr(recipe, "participants")
    return client_model(local_recipe(recipe), 0) if one_shot else model_of(recipe, group)


def groups_of(recipe):
    return range(recipe.global_models) if hasattr(recipe, "participants") else range(1)


def network_of(model):
    if model.name == "logistic_regression":
        return LogisticRegression
    if model.name in PARTS:
        return partial(PARTS[model.name], model.blocks, model.width, model.norm == "batch")
    if model.more_outputs == "features":
        return PrototypeNetwork
    outputs = CLASSES + model.more_outputs
    body, head = partial(SmallNetwork, model.width, model.hidden), model.head
    if head is None:
        return partial(body, outputs)
    return lambda: HeadedNetwork(body(head.hidden), head.hidden, head.width, head.relu)


@dataclass(frozen=True)
class Made:
    """A finished run of an experiment."""

    folder: Path

    def runs(self, experiment, method):
        described = read_runs_file(
            self.folder / f"results/descriptions/{experiment}/default.runs.json"
        )
        return [run for run in described.runs if run.settings["method"] == method]

    def recipe(self, method):
        (run,) = self.runs("exact", method)
        return run.candidates[0].parts[-1].recipe

    def tensors(self, path):
        return load_file(self.folder / path)

    def accuracy(self, run):
        table = pq.read_table(self.folder / run.metrics).to_pydict()
        return table["top1_accuracy"][-1]

    def recorded(self, recipe, batches=None, of_core=None):
        """Return what a recipe was given, as a reference reads it."""
        federated = hasattr(recipe, "participants")
        data = Path(data_files.data_file(recipe.data, "train")).parent
        own = recipe if federated else local_recipe(recipe)
        initial = [
            self.folder
            / data_files.initial_weights(recipe.data, model_in(recipe, group), recipe.seed, group)
            for group in groups_of(recipe)
        ]
        table = self.folder / data_files.participation_table(recipe, 1) if federated else None
        partition = self.folder / data_files.clients_table(own)
        return Recorded(
            networks_of(recipe), self.folder / data, partition, table, initial, batches, of_core
        )


def make(folder, config=CONFIG):
    """Run the workflow in a new folder, up to the metrics: guarantees of privacy take longer."""
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    Project(folder).make("--omit-from", "scores")
    return Made(folder)
