"""A study: a project of the workflow that a call from Python writes, runs and reads."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml
from torch import nn

from fedstage.data.datasets.tensors import is_image
from fedstage.errors import FedstageError
from fedstage.execution.project import WORKFLOW, make_project
from fedstage.experiments.catalogue import load_catalogue
from fedstage.protocol.teaching import teaching
from fedstage.python.models import model as trained_model
from fedstage.python.samples import Samples, parts, save
from fedstage.python.source import plugin
from fedstage.results.differences import compare
from fedstage.results.table import score_table
from fedstage.results.targets import read_target, scores
from fedstage.settings.merging import Raw
from fedstage.settings.plugins import load_plugins
from fedstage.settings.recipes import LocalRecipe
from fedstage.settings.registry import PLUGINS
from fedstage.storage.files import save_text

_NAME = "study"  # of the experiment
_HEAD = "# Written by fedstage.run, at each call.\n"
_PLUGIN = "my_model.py"


@dataclass(frozen=True)
class Study:
    """The results of `fedstage.run`, in a folder that the command line can go on with."""

    folder: Path

    @property
    def table(self) -> pd.DataFrame:
        """One row per method, as `results/tables/study/default.md` shows it."""
        return score_table(read_target(_NAME, folder=self.folder)).exact

    @property
    def curves(self) -> pd.DataFrame:
        """Test accuracy in percent, `value`, for each `method`, `seed` and `round`."""
        return scores(_NAME, self.folder).query("measure == 'top1_accuracy' and role == 'test'")

    def compare(self, baseline: str | None = None, **options: Any) -> pd.DataFrame:
        """Return differences between methods, paired over seeds: `fedstage.results.compare`."""
        return compare(_NAME, baseline=baseline, folder=self.folder, **options)

    def model(self, method: str, seed: int | None = None, **options: Any) -> nn.Module:
        """Return a trained model, of the source of `model`: `fedstage.results.model`."""
        return trained_model(_NAME, method, seed, folder=self.folder, **options)


def run(
    *,
    model: Callable[..., nn.Module] | str | Mapping[str, Any],
    clients: Sequence[Any] | Samples,
    methods: Iterable[str] | Mapping[str, Mapping[str, Any]],
    test: Any = None,
    public: Any = None,
    rounds: int = 10,
    seeds: Iterable[int] = (0,),
    client: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
    folder: str | Path = _NAME,
    cores: int | Literal["all"] = "all",
    gpu: int = 0,
    plugins: Iterable[str | Path] = (),
    **settings: Any,
) -> Study:
    """Train and compare methods on a model and data, and return the results.

    The call writes a project into `folder`, as a user would by hand, and runs Snakemake in it. What
    is there already stays: a call with one more seed trains one more seed.

    Parameters
    ----------
    model : class, function, str or mapping
        A class of modules, or a function that returns one. It needs no arguments, or the shape of a
        sample and the number of classes. Its source is copied with all that it needs, also from a
        notebook. Otherwise an architecture, as in YAML: ``"cnn_small"``, ``{"mlp": {...}}``.
    clients : sequence, or `fedstage.Samples`
        The samples of each client: pairs (x, y) of tensors or arrays, or torch Datasets. x are
        images, uint8 [n, C, H, W], which are standardised, or float features [n, ...], which are
        not; y are the classes 0, 1, ...
    methods : iterable of str, or mapping
        Methods of ``fedstage list methods``. A mapping gives changes to each, or new methods.
    test : pair or Dataset, optional
        Test samples. By default a fifth of each client's samples of each class.
    public : tensor or array, optional
        Samples without labels, for methods that distil. By default, if a method needs them, a fifth
        of the clients' samples.
    rounds : int
        Number of rounds.
    seeds : iterable of int
        Seeds; all methods of a seed have the same partition, participants and initial weights.
    client, server : mapping, optional
        How participants and the server train; by default ``{"epochs": 1, "batch_size": 32,
        "learning_rate": 0.1}`` and ``{"steps": 100, "batch_size": 64, "learning_rate": 0.05}``.
    folder : str or Path
        The project's folder.
    cores : int or ``"all"``
        Number of jobs at a time.
    gpu : int
        Number of jobs at a time on GPUs; 0 computes on the CPU.
    plugins : iterable of str or Path
        Files, or folders of files, with further parts of your own, such as trainers.
    **settings
        Further settings of the experiment's base, such as `participants` (by default all clients),
        `partition` or `validation`.

    Raises
    ------
    FedstageError
        If an argument is not valid, or the run fails.
    """
    folder = Path(folder).resolve()
    _check(folder)
    made = parts(clients, test, public)
    data: Raw = {"folder": save(made, folder / "data")}
    if test is None:
        data["test_fraction"] = 0.2
        _tell("test: not given, a fifth of the samples is held out")
    data["held_out"] = len(made["public"]["x"] if "public" in made else made["train"]["y"][::5])
    number = clients.clients if isinstance(clients, Samples) else len(clients)
    source = None if isinstance(model, str | Mapping) else plugin(model)
    steps = {} if "steps" in (client or {}) else {"epochs": 1}
    base = {
        "data": {"image_tensors" if is_image(made["train"]["x"]) else "feature_tensors": data},
        "clients": number,
        "participants": number,
        "partition": "iid" if isinstance(clients, Samples) else "natural",
        "model": getattr(model, "__name__", model),
        "rounds": rounds,
        "client": {**steps, "batch_size": 32, "learning_rate": 0.1, **(client or {})},
        "server": {"steps": 100, "batch_size": 64, "learning_rate": 0.05, **(server or {})},
        "aggregator_fraction": 0.1,
        "numerics": {"device": "cuda" if gpu else "cpu"},
    } | settings
    experiment = {
        "title": folder.name,
        "base": base,
        "methods": dict(methods) if isinstance(methods, Mapping) else {},
        "grid": {"method": list(methods), "seed": list(map(int, seeds))},
        "scales": {"default": {}},
    }
    named = [str(Path(path).resolve()) for path in plugins]
    named += [] if source is None else [_PLUGIN]
    config: Raw = {"targets": [_NAME], "data_folder": "data", "plugins": named}
    config["experiments"] = {_NAME: experiment}
    if source is not None:
        _write(folder / _PLUGIN, source)
    PLUGINS.named = None  # the file may have changed
    load_plugins([str(folder / path) for path in named])
    runs = load_catalogue(config, WORKFLOW, _NAME).runs[_NAME, "default"]
    taught = [teaching(run.recipe) for run in runs if not isinstance(run.recipe, LocalRecipe)]
    if not any(one.public.name == "held_out" for one in taught if one):
        del data["held_out"]
    elif public is None:
        _tell("public: not given, a fifth of the training samples is held out")
    _write(folder / "config.yaml", _HEAD + yaml.safe_dump(config, sort_keys=False))
    make_project(folder, "experiments", "my_methods")
    _snakemake(folder, "--cores", str(cores), *(["--resources", f"gpu={gpu}"] if gpu else []))
    return Study(folder)


def _tell(line: str) -> None:
    print(f"fedstage: {line}", file=sys.stderr)


def _check(folder: Path) -> None:
    """Refuse a folder with a project that is not from here."""
    config = folder / "config.yaml"
    if config.exists():
        ours = config.read_text(encoding="utf-8").startswith(_HEAD)
    else:
        ours = not (folder / "Snakefile").exists()
    if not ours:
        raise FedstageError(f"{folder}: has a project of its own; take another folder")


def _write(path: Path, text: str) -> None:
    """Write a file unless it is there, so that its time tells when it has changed."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        save_text(path, text)


def _snakemake(folder: Path, *arguments: str) -> None:
    """Run Snakemake in a folder; what it prints goes to `sys.stderr`, also in a notebook."""
    shown = None if sys.stderr.isatty() else subprocess.PIPE
    command = [sys.executable, "-m", "snakemake", *arguments, _NAME]
    with subprocess.Popen(
        command, cwd=folder, stdout=shown, stderr=shown and subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                print(line, end="", file=sys.stderr)
        finally:
            process.wait()  # after Ctrl-C, which Snakemake gets, too
    if process.returncode:
        raise FedstageError(f"{folder}: the run has failed, see above; the same call goes on")
