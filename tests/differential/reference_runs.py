"""Real runs that references are compared with: the same methods twice.

`exact`: one seed and a network, all samples of a client or distillation in each step. `drawn`: many
seeds, a linear model, small batches.
"""

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from reference.network import HeadedNetwork, LogisticRegression, SmallNetwork
from reference.reading import Recorded
from safetensors.torch import load_file

from fedstage.plan import artefacts
from fedstage.plan.one_shot_sharing import local_line
from fedstage.results.runs_file import read_runs_file

REPOSITORY = Path(__file__).parents[2]
ROUNDS, SEEDS, CLIENTS, PARTICIPANTS = 3, 12, 5, 3
ALL = 2000  # more samples than there are
BATCH = 16

TWO_MODELS = {"global_models": 2, "participants": 4}
AGGREGATOR = {"federated": {"rounds": 3, "steps": 2, "batch_size": ALL, "learning_rate": 0.5}}
DRAWS = {
    "ensemble": {"bayesian": {"samples": 3}},
    "server": {"swa": {"every": 3}, "schedule": {"cyclical": {"cycle": 3}}},
}


SMALL = {"cnn_small": {"width": 4, "hidden": 16}}
HEAD = {"head": {"hidden": 16, "width": 12, "relu": False}}
HEADED = {"model": {"cnn_small": SMALL["cnn_small"] | HEAD}}


def one_shot(rule, **changes):
    own = {"training": "one_shot", "rounds": 1, "aggregator": rule}
    return own | {"aggregator_training": AGGREGATOR} | changes


RULES = {
    "fens_averaging": one_shot("averaging"),
    "fens_weighted": one_shot("weighted"),
    "fens_voting": one_shot("voting"),
    "fens_linear": one_shot("linear"),
    "fens_per_class": one_shot("per_class"),
    "fens_mlp": one_shot({"mlp": {"hidden": 8}}),
}
#: Nothing moves, so that lambda_0, which is no artefact of `fens_mlp`, is one of this.
STANDING = {"federated": {"rounds": 1, "learning_rate": 1e-30, "server_optimizer": "average"}}
METHODS = {
    "fedavg": {},
    "fedprox": {"local": {"fedprox": {"mu": 0.1}}},
    "scaffold": {},
    "scaffold_i": {"like": "scaffold", "local": {"scaffold": {"option": "I"}}},
    "fedadam": {},
    "fedyogi": {},
    "fednova": {"client": {"batch_size": 32, "learning_rate": 0.02}},
    "moon": HEADED,
    "feddf": {},
    "fedbe_gaussian": DRAWS,
    "fedbe_dirichlet": DRAWS,
    "fedsdd": TWO_MODELS,
    "fedsdd_r2": {"like": "fedsdd", "ensemble": {"aggregated": {"checkpoints": 2}}},
    "basic": {"like": "fedsdd_r2", "global": {"basic": {"warm_up": 1}}},
    **RULES,
    "mlp_before": one_shot({"mlp": {"hidden": 8}}, aggregator_training=STANDING),
    "fedkd": {"server": {"augmentation": "none"}},
    "fedet_os": {},
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
#: MOON needs a network with a head, which learns too slowly for this; its draws are the others'.
COMPARED = {
    "fedavg": {},
    "fedprox": {"local": {"fedprox": {"mu": 1.0}}},
    "scaffold": {},
    "fedyogi": {"aggregation": {"server_optimizer": {"yogi": {"learning_rate": 0.1}}}},
    "fednova": {"client": {"batch_size": BATCH, "learning_rate": 0.01}},
    "feddf": {},
    "fedbe_gaussian": {},
    "fedsdd_r2": {},
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
    "targets": ["exact", "drawn"],
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


def network_of(line):
    """Return the class of the references' network that is a line's."""
    if line.model.name == "logistic_regression":
        return LogisticRegression
    return HeadedNetwork if line.model.head is not None else SmallNetwork


@dataclass(frozen=True)
class Made:
    """A finished run of both experiments."""

    folder: Path

    def runs(self, experiment, method):
        described = read_runs_file(
            self.folder / f"results/descriptions/{experiment}/default.runs.json"
        )
        return [run for run in described.runs if run.settings["method"] == method]

    def line(self, method):
        (run,) = self.runs("exact", method)
        return run.candidates[0].parts[-1].line

    def tensors(self, path):
        return load_file(self.folder / path)

    def accuracy(self, run):
        table = pq.read_table(self.folder / run.metrics).to_pydict()
        return table["top1_accuracy"][-1]

    def recorded(self, line, batches=None):
        """Return what a line was given, as a reference reads it."""
        federated = hasattr(line, "participants")
        data = Path(artefacts.data_file(line.data, "train")).parent
        own = line if federated else local_line(line)
        initial = Path(artefacts.initial_model(line.data, line.model, line.seed, 0)).parent
        table = self.folder / artefacts.participation_table(line, 1) if federated else None
        partition = self.folder / artefacts.clients_table(own)
        return Recorded(
            network_of(line), self.folder / data, partition, table, self.folder / initial, batches
        )


def make(folder):
    """Run the workflow in a new folder."""
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    scripts, owner = str(Path(sys.executable).parent), f"{socket.gethostname()}-{os.getpid()}"
    changed = {"PATH": scripts + os.pathsep + os.environ["PATH"], "FEDSTAGE_OWNER": owner}
    command = [
        sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile"),
        "--directory", str(folder), "--cores", "2",
    ]  # fmt: skip
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | changed,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return Made(folder)
