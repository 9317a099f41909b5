"""Real snakemake runs on a tiny configuration, in folders of their own."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
import yaml
from tests.shared.settings import federated
from tests.workflow import prepared

from fedstage.plan.training import DISTILLATIONS

REPOSITORY = Path(__file__).parents[2]
METHODS = ["fedavg", "fedsdd", "scaffold"]
BATCH_NORM = {"cnn_small": {"width": 2, "hidden": 4, "norm": "batch"}}

#: Clients of two architectures and, before them, a larger model on the server, with one head.
SERVED = {
    "participants": 3,
    "participation": "by_samples",
    "global_models": 3,
    "architectures": [
        {"cnn_small": {"width": width, "hidden": 4, "head": {"hidden": 6, "width": 4}}}
        for width in (4, 3, 2)
    ],
}
SERVED["model"] = SERVED["architectures"][0]

#: Clients of two depths, which send their features to a model that goes on from them.
SPLIT = SERVED | {
    "architectures": [
        {"resnet_upper": {"blocks": 1, "width": 2}},
        *({"resnet_lower": {"blocks": blocks, "width": 2}} for blocks in (1, 0)),
    ]
}
SPLIT["model"] = SPLIT["architectures"][0]


def tiny_config(*, results=("table",), **changes):
    """A configuration that trains linear models for two rounds; changes go into its base."""
    base = federated(
        data={"digits": {"test": 200, "held_out": 100, "server_validation": 50}},
        partition={"dirichlet": {"alpha": 1.0, "min_samples": 5}},
        validation=0.1,
        model="logistic_regression",
        rounds=2,
        client={"epochs": 1, "batch_size": 32, "learning_rate": 0.05},
        server={"steps": 5, "batch_size": 32, "learning_rate": 0.05},
        numerics={"device": "cpu"},
    )
    methods = changes.pop("methods", METHODS)
    return {
        "targets": ["tiny"],
        **{key: changes.pop(key) for key in ("execution", "keep") if key in changes},
        "experiments": {
            "tiny": {
                "title": "Tiny",
                "base": base | changes,
                "methods": {
                    "fedsdd": {"global_models": 2},
                    "fedsdd_basic": {
                        "local": "fedavg",
                        "global_models": 2,
                        "ensemble": {"aggregated": {"checkpoints": 2}},
                        "global": {"basic": {"warm_up": 1}},
                    },
                    "scaffold": {"client": {"learning_rate": 0.02}},
                    "asked": {
                        "local": "fedavg",
                        "core": {"classes": "some"},
                        "public": "core",
                        "model": BATCH_NORM,
                        "ensemble": "clients",
                        "global": {"basic": {"starts_from": "previous"}},
                        "server": {
                            "labels": 1.0,
                            "augmentation": "crop_flip",
                            "teacher_images": "augmented",
                            "buffer": {"refresh": "epoch"},
                        },
                    },
                    "asked_averages": {
                        "local": "fedavg",
                        "model": {"resnet8": {"norm": "batch"}},
                        "global_models": 2,
                        "ensemble": {"aggregated": {"checkpoints": 2}},
                        "global": "designated",
                        "server": {
                            "augmentation": "flip",
                            "teacher_images": "augmented",
                            "factor_transfer": {"epochs": 1},
                            "moving_average": {"decay": 0.5},
                        },
                    },
                    "fedftg": {"generator": {"fedftg": {"width": 2, "student_steps": 2}}},
                    "fedftg_as_released": {
                        "local": "scaffold",
                        "generator": {"fedftg_as_released": {"width": 2}},
                    },
                    "fedgo": {
                        "ensemble": {
                            "odds": {
                                "generator": {"latent": 3, "width": 2, "steps": 3},
                                "discriminator": {"width": 2, "epochs": 1},
                            }
                        }
                    },
                    "fedgkd": {"local": {"fedgkd": {"models": 3}}},
                    "fedgkd_taught": {
                        "like": "fedgkd",
                        "ensemble": "clients",
                        "global": {"basic": {"warm_up": 1}},
                    },
                    "moon": {
                        "model": {
                            "cnn_small": {
                                "width": 4,
                                "hidden": 8,
                                "head": {"hidden": 8, "width": 8},
                            }
                        }
                    },
                    "ensemble_of_clients": {"local": "fedavg", "evaluate": "clients"},
                    "two_architectures": {
                        "local": "fedavg",
                        "global_models": 2,
                        "architectures": ["logistic_regression", "cnn_small"],
                        "ensemble": {"aggregated": {"checkpoints": 2}},
                        "global": {"designated": {"main": "per_architecture"}},
                    },
                    "own_statistics": {
                        "model": BATCH_NORM,
                        "aggregation": {"batch_norm": "local"},
                    },
                    "new_statistics": {
                        "model": BATCH_NORM,
                        "aggregation": {"batch_norm": "re_estimate"},
                    },
                    "server_of_everything": {
                        "local": "scaffold",
                        "model": BATCH_NORM,
                        "global_models": 2,
                        "participants": 4,
                        "aggregation": {"server_optimizer": "yogi", "batch_norm": "local"},
                        "ensemble": "aggregated",
                        "global": "designated",
                    },
                    "fedet": SERVED,
                    "dsfl": SERVED,
                    "scarlet": SERVED
                    | {
                        "local": {"digest": {"cache": {"duration": 2}}},
                        "server": {"samples_a_round": 50},
                    },
                    "fedgems": SERVED | {"core": {"classes": "some"}},
                    "fedmd": SERVED,
                    "fedgkt": SPLIT,
                    "bayesian": {"local": "fedavg", "evaluate": {"bayesian": {"samples": 3}}},
                    "fedbe_as_released": {"server": {"swa": {"every": 2}}},
                    "fedbe_dirichlet": {"server": {"swa": {"every": 2}}},
                    "feddf_original": {
                        "global_models": 2,
                        "server": {"early_stopping": {"every": 2, "patience": 2}},
                    },
                },
                "grid": {"method": methods},
                "results": list(results),
                "scales": {"default": {}},
            }
        },
    }


def stage_of(rule):
    """Return what tests count a rule as: all that distil, and scores in both folders, as one."""
    if any(rule.startswith(stage.name) for stage in DISTILLATIONS):
        return "distillation"
    return rule.partition("_of_distilled_models")[0]


@dataclass(frozen=True)
class Run:
    """What a call of snakemake did."""

    code: int
    output: str

    @property
    def jobs(self):
        """Jobs by rule, from the table that snakemake prints; empty where nothing is to be done."""
        table = re.search(r"Job stats:\njob +count\n[- ]+\n(.*?)\ntotal", self.output, re.DOTALL)
        found = Counter()
        for row in table[1].splitlines() if table else []:
            rule, count = row.split()
            found[stage_of(rule)] += int(count)
        return found

    @property
    def messages(self):
        return re.findall(r"^(?:Job \d+|\w*job \d+): (.*)$", self.output, re.MULTILINE)

    def trained(self):
        """The (round, participant, recipe) of each participant that trains, sorted."""
        pattern = r"local_training: round (\d{4}), group \d+, participant (\d+) \((\S+)\)"
        return sorted(
            (int(match[1]), int(match[2]), match[3]) for match in re.finditer(pattern, self.output)
        )


@dataclass(frozen=True)
class Project:
    """A working folder, and the Snakefile that it is worked in with."""

    path: Path
    snakefile: Path = REPOSITORY / "Snakefile"

    def configure(self, **changes):
        (self.path / "config.yaml").write_text(yaml.safe_dump(tiny_config(**changes)))
        return self

    def command(self, *arguments, cores=2):
        return [
            sys.executable, "-m", "snakemake", "--snakefile", str(self.snakefile),
            "--directory", str(self.path), "--cores", str(cores), *arguments,
        ]  # fmt: skip

    def start(self, *arguments):
        """Start snakemake in a session of its own, as a terminal would."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )

    def call(self, *arguments, cores=2, short=False, **variables):
        """Call snakemake, which prints every job unless `short`, as it does for users."""
        shown = () if short else ("--printshellcmds",)
        command = self.command(*arguments, *shown, cores=cores)
        if "PYTHONPATH" not in variables:  # in which Python looks for what it runs at its start
            with NamedTemporaryFile("r", suffix=".log") as output:
                code = prepared.call(command[3:], output.name, environment() | variables)
                return Run(code, output.read())
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment() | variables,
            timeout=prepared.TIMEOUT,
        )
        return Run(done.returncode, done.stdout)

    def job(self, job, rule):
        """Run one job as an executor does on a compute node."""
        options = ("--allowed-rules", rule, "--force", "--nolock", "--mode", "subprocess")
        arguments = "results/tables/tiny/default.csv"  # of the call that sends the job there
        return self.make("--target-jobs", job, *options, FEDSTAGE_ARGUMENTS=arguments)

    def make(self, *arguments, cores=2, short=False, **variables):
        run = self.call(*arguments, cores=cores, short=short, **variables)
        assert run.code == 0, run.output
        return run

    def plan(self, *arguments):
        return self.make(*arguments, "--dry-run")

    def files(self, pattern):
        return sorted(path.relative_to(self.path) for path in self.path.glob(pattern))

    def results(self):
        """Bytes of every result that must not depend on how the work was done."""
        folders = ["data", "partitions", "participation", "initial_models", "training", "tables"]
        paths = [path for name in folders for path in (self.path / "results" / name).rglob("*")]
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in paths
            if path.is_file()
            and not path.name.endswith((".scores.parquet", ".costs.parquet"))  # with seconds
        }

    def recipe(self, *, method="fedavg"):
        """The folder of the only training recipe whose id has `method` as its method part."""
        (folder,) = (self.path / "results/training").glob(f"*-logistic_regression-{method}-seed0-*")
        return folder


def environment():
    """The environment of a user who has the package's commands on the path."""
    scripts = str(Path(sys.executable).parent)
    return os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run; tests change copies of it."""
    project = Project(tmp_path_factory.mktemp("finished")).configure(results=["table", "figures"])
    project.make()
    return project


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the finished run, with its times and snakemake's notes."""
    shutil.copytree(finished.path, tmp_path / "copy", symlinks=True)
    return Project(tmp_path / "copy")


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """A function that makes an empty working folder, for runs that several tests look at."""
    return lambda: Project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """The workflow's Snakefile beside one experiment of a file: all take half a minute to resolve.

    For what looks at every experiment: clients that are forgotten, folders of no known settings.
    """
    folder = tmp_path_factory.mktemp("alone")
    shutil.copy(REPOSITORY / "Snakefile", folder)
    for name in ("experiments", "papers"):
        (folder / "workflow" / name).mkdir(parents=True)
    for name in ("Snakefile", "methods.yaml", "profiles", "report", "rules", "schemas"):
        (folder / "workflow" / name).symlink_to(REPOSITORY / "workflow" / name)
    shutil.copy(
        REPOSITORY / "workflow/experiments/stale_clients.yaml", folder / "workflow/experiments"
    )
    return folder / "Snakefile"


@pytest.fixture
def project(tmp_path):
    """An empty working folder."""
    return Project(tmp_path).configure()


@pytest.fixture
def served():
    """The settings of clients of two architectures and of a larger model on the server."""
    return SERVED
