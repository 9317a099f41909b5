"""The runs file: everything that is known about an experiment at a scale before training.

The workflow writes it when the Snakefile is parsed, and every stage that makes results reads it. It
has the axes of the table, and for each run its recipes, the files of its metrics and partition, and
the published numbers of its cell.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.settings.base import Settings
from fedstage.settings.cells import check_cells, selects, show_point
from fedstage.settings.experiments import Also, Bands, Simulation, Style
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Axis, Metric, Number, Reach, Regime
from fedstage.settings.validation import validate
from fedstage.storage.files import folder_above, load_json
from fedstage.storage.yaml_files import load_project_plugins

SEED = "seed"


def _placed(file: str, info: ValidationInfo) -> str:
    """Return the path that leads to a file from here; the context is the folder above results."""
    return str(Path(info.context or "", file))


#: A path that begins with the folder `results`, wherever that folder is.
ResultsFile = Annotated[str, AfterValidator(_placed)]
#: One for each candidate.
ResultsFiles = Annotated[list[ResultsFile], Field(min_length=1)]


class Part(Settings):
    """One of several runs that each continue the one before: its length, and one kind of recipe."""

    length: RunLength
    federated: Recipe | None = None
    one_shot: OneShotRecipe | None = None
    local: LocalRecipe | None = None

    @property
    def recipe(self) -> Recipe | OneShotRecipe | LocalRecipe:
        """The recipe."""
        recipe = self.federated or self.one_shot or self.local
        assert recipe is not None, "written by describe_runs"
        return recipe


class Candidate(Settings):
    """The parts of a run, in order; `values` distinguish it from the run's other candidates.

    `participants` are the tables of all rounds, if updates may be dropped or samples are private.
    """

    values: dict[str, Axis] = {}
    participants: list[ResultsFile] = []
    parts: Annotated[list[Part], Field(min_length=1)]


class ExperimentRun(Settings):
    """A run: its value on every axis, its files, its data set's info, and its candidates.

    If there are several `candidates`, the file `chosen` names one. `validation` has each
    candidate's metrics on validation samples, for a federated run with such samples. `over_rounds`
    has metrics during training, for a model that was trained on clients' logits. `published`,
    `published_in` (by the other metrics of claims), `memory_mib`, `published_params` (sent until a
    goal is reached) and `published_ratio` (sent, relative to FedAvg) are the paper's numbers for
    the run's cell. `retention` has each candidate's measures of forgetting, and `clients` its
    accuracies by client and class, if the experiment has these.
    """

    settings: dict[str, Axis]
    metrics: ResultsFile
    partition: ResultsFile
    info: ResultsFile | None = None
    candidates: Annotated[list[Candidate], Field(min_length=1)]
    chosen: ResultsFile | None = None
    validation: ResultsFiles | None = None
    over_rounds: ResultsFile | None = None
    retention: ResultsFiles | None = None
    clients: ResultsFiles | None = None
    published: Number | None = None
    published_in: dict[str, Number | None] = {}
    memory_mib: float | None = None
    published_params: float | None = None
    published_ratio: float | None = None

    def which(self) -> int:
        """Return the position of the chosen candidate, which is the only one of most runs."""
        if self.chosen is None:
            return 0
        values = load_json(Path(self.chosen))["chosen"]
        return [candidate.values for candidate in self.candidates].index(values)

    @property
    def length(self) -> RunLength:
        """The length of the run, or of its first candidate."""
        return self.candidates[0].parts[-1].length

    @property
    def recipe(self) -> Recipe:
        """The recipe of a federated run; raises FedstageError for other runs."""
        recipe = self.candidates[0].parts[-1].recipe
        if not isinstance(recipe, Recipe):
            raise FedstageError(f"{show_point(self.settings)}: has no rounds")
        return recipe


class ExperimentRuns(Settings):
    """An experiment at a scale: its runs, and the axes and metric of its table.

    `published` names the paper and table of the runs' published numbers. They were
    `measured_at` and `published_at` two scales. `memory`, `params` and `ratio` name the sources of
    published communication costs.
    `traffic` says whether bytes are counted.
    `labels` are the names of methods for people, and `styles` are their given looks in figures.
    """

    experiment: str
    scale: str
    title: str
    rows: Annotated[list[str], Field(min_length=1)]
    columns: list[str] = []
    metric: Metric = "top1_accuracy"
    also: list[Also] = []
    over: str | None = None
    baseline: str | None = None
    published: str | None = None
    measured_at: str = ""
    published_at: str = ""
    notes: list[str] = []
    memory: str | None = None
    params: str | None = None
    ratio: str | None = None
    reach: Reach | None = None
    regime: Regime | None = None
    traffic: bool = False
    labels: dict[str, str] = {}
    styles: dict[str, Style] = {}
    bands: Bands = "interval"
    simulation: Simulation = Simulation()
    runs: Annotated[list[ExperimentRun], Field(min_length=1)]


def read_runs_file(path: Path) -> ExperimentRuns:
    """Read a runs file, with paths that lead to its files from here.

    In the file, paths begin with the folder `results` that contains it, wherever that folder is.

    Raises
    ------
    FedstageError
        If the file is missing, damaged or of another kind.
    """
    return validate(ExperimentRuns, load_json(path), str(path), folder_above(path))


# --- the runs of a target -------------------------------------------------------------------------

METHOD = "method"


def runs_path(target: str, folder: Path) -> Path:
    """Return the runs file of a target in a working folder.

    Raises
    ------
    FedstageError
        If there are no results of the target.
    """
    experiment, scale = split_target(target)
    path = folder / RESULTS / "descriptions" / experiment / f"{scale}.runs.json"
    if not path.is_file():
        known = sorted((folder / RESULTS / "descriptions").glob("*/*.runs.json"))
        names = [f"{path.parent.name}/{path.name.removesuffix('.runs.json')}" for path in known]
        there = f"there is {', '.join(names)}" if names else "there are no results"
        raise FedstageError(f"{target}: no results ({path}); {there}")
    return path


def read_target(target: str, folder: Path) -> ExperimentRuns:
    """Return the runs of a target, with paths that lead to its files from here.

    The project's plugins are loaded, since runs may have their settings.
    """
    path = runs_path(target, folder)
    load_project_plugins(folder / "config.yaml", folder)
    return read_runs_file(path)


def find_run(
    target: str, method: str, seed: int | None, at: Mapping[str, Axis] | None, folder: Path
) -> tuple[str, ExperimentRun, Part]:
    """Return the name for messages of the only run with these values, the run, and its last part.

    Without a seed it must be the only one; `at` are values on further axes.

    Raises
    ------
    FedstageError
        If the target lacks an axis or a value, or if several runs have these values.
    """
    experiment = read_target(target, folder)
    named: dict[str, Axis] = {METHOD: method, SEED: seed, **(at or {})}
    wanted = {axis: value for axis, value in named.items() if (axis, value) != (SEED, None)}
    points = [run.settings for run in experiment.runs]
    check_cells(target, target, dict(wanted), points, seeds=True)
    found = [run for run in experiment.runs if selects(dict(wanted), run.settings)]
    where = f"{target}: {show_point(wanted)}"
    if not found:
        raise FedstageError(f"{where}: no run has all of these values")
    if len(found) > 1:
        differing = [
            axis for axis in found[0].settings if len({run.settings[axis] for run in found}) > 1
        ]
        values = show_point({axis: found[0].settings[axis] for axis in differing})
        raise FedstageError(
            f"{where}: {len(found)} runs; name one by further axes, such as {values}"
        )
    return where, found[0], last_part(found[0])


def last_part(run: ExperimentRun) -> Part:
    """Return the last part of a run; of its chosen candidate, if it has several."""
    return run.candidates[run.which()].parts[-1]
