"""Every function of the package that runs in a job is in the source of that job.

`settings` and `plan` are in none, so that no function of theirs may determine what a job computes.

Jobs of every stage that runs an algorithm are made, and those that differ in what they compute are
run once more here, by the commands in their logs, with a profile function that notes what is called
while the stage runs, also as a part of a segment.
"""

import shlex
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml
from torchvision.models import resnet18

from fedstage.execution import jobs
from fedstage.plan.source import Source, reachable, source_of_job
from fedstage.plan.stages import GRAPH, RESULTS, STAGES
from fedstage.plan.syntax import modules
from fedstage.stages import run_job, segment
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.records import load_record

pytestmark = pytest.mark.workflow

#: Methods of rounds, which together call most of what rounds can call.
ROUNDS = {
    **dict.fromkeys(("fedsdd", "scaffold", "fedgkd", "fedgo", "fedgems", "fedgkt", "scarlet")),
    **dict.fromkeys(("asked_averages", "fedet", "server_of_everything")),
    **dict.fromkeys(("fedftg", "new_statistics", "moon")),
    "in_part": {"like": "linear_probing"},
    "late": {"local": "fedavg", "staleness": {"cyclic": {"delays": [0, 1]}}},
    "late_changes": {"like": "fedbuff", "staleness": "never"},
    "buffered": {"like": "feddf_buffered", "server": {"buffer": {"after": 1}}},
    "judged": {"like": "feddf_improved", "server": {"early_stopping": {"every": 2}}},
    "drawn": {"like": "fedbe_gaussian", "server": {"swa": {"every": 2}}},
    "voted": {"local": {"fedgkd": {"models": 2, "teacher": "vote"}}},
    "median": {"local": "fedavg", "aggregation": {"rule": "median"}},
    "normalised": {"like": "fednova", "aggregation": {"server_optimizer": "average"}},
    "scored": {"local": "fedavg", "evaluate": "clients"},
    "secure": {
        "local": "fedavg",
        "aggregation": {"secure": {"threshold": 2, "clip": 1.0, "most_samples": 2000}},
    },
    "secure_variates": {
        "like": "scaffold",
        "aggregation": {"secure": {"threshold": 2, "clip": 1.0, "most_samples": 2000}},
    },
    "private": {
        "local": "fedavg",
        "aggregation": {"weights": "uniform"},
        "participation": "poisson",
        "privacy": {"client": {"clip": 1.0, "noise": 1.0}},
    },
    "private_samples": {
        "local": "fedavg",
        "privacy": {"example": {"clip": 1.0, "noise": 1.0, "delta": 1e-4}},
    },
    "chosen": {"local": "fedavg", "rounds": 1, "choose": {"among": {"client.epochs": [1, 2]}}},
}
TAUGHT = {"steps": 2, "epochs": None, "batch_size": 16, "learning_rate": 0.05}
BESIDE = {"server": TAUGHT | {"steps": None, "epochs": 2}}
TRAINED = {"rounds": 2, "batch_size": 8}
FEW = {"latent": 2, "width": 2, "epochs": 1}
NORMED = {"model": {"resnet8": {"norm": "batch"}}}
FEATURES = {
    "features": {
        "of": {"digits": {"test": 200}},
        "encoder": {"torchvision": {"architecture": "resnet18", "weights": "resnet18.pth"}},
        "image_size": 32,
    }
}
ADVERSARY = {"latent": 2, "width": 2, "steps": 2, "batch_size": 8}
#: Methods of one shot, and what they are compared with: each stage, by most of its modules.
ONE_SHOT = {
    **dict.fromkeys(("local_only", "centralised", "fedens", "fedov", "guha_random", "ghofl_nb")),
    "on_core": {"training": "core", "rounds": 1, "core": {"classes": "some"}},
    "fens": {"aggregator_training": {"federated": TRAINED}},
    "fens_secure": {
        "like": "fens",
        "aggregator_training": {
            "federated": TRAINED | {"secure": {"threshold": 3, "clip": 1.0, "most_samples": 2000}}
        },
    },
    "fens_int8": {"aggregator_training": {"federated": TRAINED}},
    "fens_distilled": {"aggregator_training": {"federated": TRAINED}, "server": TAUGHT},
    "voting": {"like": "fens", "aggregator": "voting", "forget": [3]},
    "fedboost": {"aggregator_training": {"mirror_descent": {"rounds": 2, "predictors": 2}}},
    "guha_data": {"members": {"largest": {"count": 2}}},
    "guha_distilled": {"members": {"best": {"count": 2}}, "server": TAUGHT},
    "fafi": NORMED,
    "fedkd": {"server": TAUGHT | {"buffer": {"refresh": "epoch"}}},
    "fedet_os": {"server": TAUGHT},
    "fedcvae_ens": BESIDE | {"generator": {"cvae": FEW | {"samples": 20}}},
    "fedcvae_kd": BESIDE
    | {"generator": {"cvae": FEW | {"samples": 20, "distilled": {"samples": 20, "epochs": 1}}}},
    "dense": BESIDE | NORMED | {"generator": {"dense": ADVERSARY}},
    "coboosting": BESIDE | {"generator": {"coboosting": ADVERSARY}},
    "ghofl": NORMED,
    "ghofl_features": {
        "like": "ghofl",
        "model": "logistic_regression",
        "data": FEATURES,
    },
    "fedpft": BESIDE
    | {
        "data": FEATURES,
        "generator": {"mixture": {"components": 2, "samples": 20}},
    },
}
if not find_spec("torchao"):  # of the extra `int8`
    del ONE_SHOT["fens_int8"]
#: The stages that run an algorithm: all but those that show results.
RUNNING = {"choice", *(stage.name for stage in GRAPH)}
#: A file of each module of the package.
FILES = {str(path): name for name, path in modules().items()}
#: While these run, files are named, or a recipe is read, which the plan has read and checked.
READING = {
    "settings.validation": {"validate", "validate_restricted"},
    "settings.base": {
        "Choice.implemented_in",
        "implementation",
        "called",
        "is_plugin",
        "Settings._check",
    },
    "settings.models": {"check_size"},
    "plan.graph": {"Job.read", "Job.files", "Job.at", "Job.inputs", "files_in"},
    "plan.members": {"parse_evaluated", "parse_sampled"},
    "plan.stages": {"module_of"},
    "plan.syntax": {"cache_folder"},
}
#: While these run, modules are imported and schemas of settings are built.
DEFINING = ("<module>", "find_spec", "__get_pydantic_core_schema__")
#: How settings are compared, checked and written, and what messages say.
ALIKE = {
    *("Settings.__eq__", "Settings.__hash__", "Settings._field_hash", "Settings.__copy__"),
    *(
        "DataSet.are_images",
        "LibraryEncoder.in_folder",
        "Dropping._with_dropout",
        "fault_of",
        "each",
    ),
}


class Calls:
    """The functions of the package that are called, by module and qualified name."""

    def __init__(self):
        self.called, self.reading = set(), 0

    def __call__(self, frame, event, _):
        module = FILES.get(frame.f_code.co_filename)
        if module is None:
            return
        name = frame.f_code.co_qualname.partition(".<locals>")[0]
        room = module.removeprefix("fedstage.")
        reads = name in READING.get(room, ()) or frame.f_code.co_name in DEFINING
        if event == "call":
            self.reading += reads
            if not self.reading and name not in ALIKE:
                self.called.add((module, name))
        elif event == "return":
            self.reading -= reads


class Traced:
    """Runs jobs and notes, once for those that compute alike, what their source does not have."""

    def __init__(self):
        self.seen, self.stages, self.missing = set(), set(), {}

    def run_alone(self, job):
        """Run a job of the graph, whose files are there, if none has run that computes alike."""
        if self.alike(job) not in self.seen:
            self.run_job(job)

    @staticmethod
    def alike(job):
        own = {key: value for key, value in job.at.items() if key not in ("client", "who")}
        there = tuple(name for name, files in job.inputs.items() if files)
        return job.stage, job.config, repr(own), there

    def run_job(self, job, *others):
        """Run a job of the graph as a part of a segment, which others may need."""
        alike = self.alike(job)
        if alike in self.seen:
            return run_job(job, *others)
        self.seen.add(alike)
        return self.call(source_of_job(job), lambda: run_job(job, *others))

    def call(self, source, run):
        """Call a function that runs a stage."""
        calls = Calls()
        sys.setprofile(calls)
        threading.setprofile(calls)
        try:
            found = run()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        self.stages.add(source.stage)
        counted = {name.partition(":")[0] for name in reachable(source)}
        for module, function in calls.called:
            if module not in counted:
                self.missing.setdefault(f"{module}:{function}", set()).add(source.stage)
        return found


def write(project):
    """Make experiments of rounds and of one shot, and one that looks closer at some rounds."""
    project.configure(execution={"granularity": "segment"}, validation=0.2)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    tiny = config["experiments"].pop("tiny")
    closer = {"fedsdd": None}
    one_shot = {"aggregator_fraction": 0.2, "local_fraction": None}
    for name, rows, base, results in (
        ("rounds", ROUNDS, {}, ["table"]),
        ("one_shot", ONE_SHOT, one_shot, ["table"]),
        ("closer", closer, {}, ["retention", "clients"]),
    ):
        own = {method: settings for method, settings in rows.items() if settings}
        config["experiments"][name] = tiny | {
            "title": name,
            "base": tiny["base"] | base,
            "methods": own if rows is ONE_SHOT else tiny["methods"] | own,
            "grid": {"method": list(rows)},
            "results": results,
        }
    config["targets"] = list(config["experiments"])
    config["data_folder"] = str(project.path)
    torch.save(resnet18().state_dict(), project.path / "resnet18.pth")
    path.write_text(yaml.safe_dump(config))
    return project


def test_what_runs_in_a_job_is_in_its_source(project, alone, monkeypatch):
    write(replace(project, snakefile=alone)).make()
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("FEDSTAGE_DATA", str(project.path))
    traced = Traced()
    monkeypatch.setattr(jobs, "run_job", traced.run_alone)
    monkeypatch.setattr(segment, "run_job", traced.run_job)
    for record in sorted(Path("results/logs").rglob(f"*{SUFFIX}")):
        stated = load_record(record)
        if STAGES[stated["stage"]] in RESULTS:
            continue
        _, _, stage, file, *words = shlex.split(stated["command"])
        job = jobs.job_of(stage, Path(file), words)
        assert stated["source"] == {
            name: code for source in job.sources for name, code in source.parts().items()
        }
        if stage == "choice":
            traced.call(Source(stage), job.run)
        else:
            job.run()
    assert traced.missing == {}, traced.missing
    assert traced.stages == RUNNING
