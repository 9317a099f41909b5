"""Descriptions of experiments for the stages of results, as JSON."""

from collections.abc import Iterator

from fedstage.experiments.catalogue import Catalogue, choice_id, find, metrics_of
from fedstage.plan import data_files, one_shot
from fedstage.plan.digests import canonical
from fedstage.plan.graph import File
from fedstage.plan.results import chosen_file
from fedstage.plan.runs import Run
from fedstage.plan.scores import CLIENT_ACCURACY, RETENTION
from fedstage.plan.training import global_model
from fedstage.results.claims.comparisons import comparisons
from fedstage.results.claims.library import distinct_cells
from fedstage.results.communication.files import read_files, traffic_files
from fedstage.results.communication.goals import by_value
from fedstage.settings.experiments import MEMORY, PARAMETERS, Experiment
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe

#: What a paper reports of communication: the keys of its source, and of a run's number.
_COMMUNICATED = {MEMORY: ("memory", "memory_mib"), PARAMETERS: ("params", "published_params")}


def describe_runs(catalogue: Catalogue, experiment: str, scale: str) -> Raw:
    """Return the runs file of an experiment at a scale: see `fedstage.results.runs_file`."""
    definition = find(catalogue.experiments, experiment, "experiment")
    resolved = catalogue.runs[experiment, scale]
    runs = [_described(run, definition) for run in resolved]
    head = {"experiment": experiment, "scale": scale, **_head(definition)}
    head["labels"] = {str(run.axes["method"]): run.label for run in resolved if run.label}
    if published := catalogue.published.get((experiment, scale)):
        # Claims look at published numbers by themselves; tables and figures show what compares.
        if published.comparable:
            head |= {"published": published.source, "notes": published.notes}
        numbers = zip(runs, published.numbers, strict=True)
        runs = [{**run, "published": number} for run, number in numbers]
    communicated = definition.communication.published
    found = catalogue.published_communication.get((experiment, scale))
    if communicated and found and found.comparable:
        of, key = _COMMUNICATED[communicated.metric]
        head |= {of: found.source, "communication_notes": found.notes}
        values = [number and number["value"] for number in found.numbers]
        runs = [{**run, key: value} for run, value in zip(runs, values, strict=True)]
    return {**head, "runs": runs}


def _head(experiment: Experiment) -> Raw:
    table = experiment.table
    head: Raw = {
        "title": experiment.title,
        "rows": table.rows,
        "columns": table.columns,
        "metric": table.metric,
        "also": table.also,
        "over": table.over,
        "reach": by_value(experiment.communication.reach) or experiment.communication.reach,
        "simulation": canonical(experiment.simulation),
    }
    return {key: value for key, value in head.items() if value is not None}


def claims_on(catalogue: Catalogue, experiment: str) -> list[Raw]:
    """Return the claims on an experiment, for JSON."""
    return [
        one.claim.model_dump(mode="json", exclude_defaults=True)
        for one in catalogue.claims
        if one.claim.experiment == experiment
    ]


def comparisons_at(catalogue: Catalogue, experiment: str, scale: str) -> dict[str, int]:
    """Return how many comparisons each claim on an experiment makes at a scale, if it has that."""
    cells = distinct_cells(run.axes for run in catalogue.runs.get((experiment, scale), []))
    claims = [one.claim for one in catalogue.claims if one.claim.experiment == experiment]
    return {claim.id: len(comparisons(claim, cells)) for claim in claims} if cells else {}


def files_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return all files that the table of communication reads, except metrics."""
    runs = catalogue.runs[experiment, scale]
    parts = (part for run in runs for part in _parts(run))
    read = (path for part in parts for path in read_files(part.recipe, part.length))
    chosen = (chosen_file(choice_id(run)) for run in runs if run.candidates)
    return list(dict.fromkeys([*read, *chosen]))


def validation_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return the metrics on validation samples, which determine the best round."""
    runs = catalogue.runs[experiment, scale]
    return list(dict.fromkeys(path for run in runs for path in _validation(run)))


def retention_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return the measures of forgetting of all runs, and what chooses among candidates."""
    runs = catalogue.runs[experiment, scale]
    measures = (path for run in runs for path in _retention(run))
    chosen = (chosen_file(choice_id(run)) for run in runs if run.candidates)
    beside = [file for path in measures for file in (path, path.job.files["right"])]
    return list(dict.fromkeys([*beside, *chosen]))


def clients_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return the accuracies by client and class of all runs, and what chooses among candidates."""
    runs = catalogue.runs[experiment, scale]
    measures = [path for run in runs for path in _clients(run)]
    chosen = (chosen_file(choice_id(run)) for run in runs if run.candidates)
    return list(dict.fromkeys([*measures, *chosen]))


def dropping_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return the participants of runs that may drop updates, and what chooses among candidates."""
    runs = catalogue.runs[experiment, scale]
    tables = [path for run in runs for one in run.candidates or (run,) for path in _dropping(one)]
    chosen = [chosen_file(choice_id(run)) for run in runs if run.candidates]
    return list(dict.fromkeys([*tables, *chosen])) if tables else []


def _dropping(run: Run) -> list[str]:
    """Return the participants of all rounds of a run whose updates may be dropped."""
    return [
        path
        for part in run.chain()
        if isinstance(part.recipe, Recipe)
        and part.recipe.on_divergence == "drop"
        and part.length.training == "federated"
        for path in traffic_files(part.recipe, part.length.rounds)
    ]


def files_of_rounds(catalogue: Catalogue) -> Iterator[str]:
    """Yield the files of rounds that results read beside metrics: tables, and main models."""
    for (name, _), runs in catalogue.runs.items():
        results = catalogue.experiments[name].results
        if "communication" in results:
            for part in (part for run in runs for part in _parts(run)):
                yield from traffic_files(part.recipe, part.length.rounds)
        if "table" in results:
            for one in (one for run in runs for one in run.candidates or (run,)):
                yield from _dropping(one)
        if "retention" in results:
            for one in (one for run in runs for one in run.candidates or (run,)):
                assert isinstance(one.recipe, Recipe), "checked when experiments are resolved"
                read = RETENTION.job(one.recipe, one.length.rounds).inputs
                yield from (*read["models"], *read["participants"])
        if "clients" in results:
            for one in (one for run in runs for one in run.candidates or (run,)):
                assert isinstance(one.recipe, Recipe), "checked when experiments are resolved"
                yield global_model(one.recipe, one.length.rounds, 0)


def _described(run: Run, experiment: Experiment) -> Raw:
    described: Raw = {
        "settings": run.axes,
        "metrics": metrics_of(run),
        "partition": data_files.label_histogram(run.recipe),
        "info": data_files.data_file(run.recipe.data, "info"),
        "candidates": [
            {
                "values": one.axes if run.candidates else {},
                "parts": [_part(p) for p in one.chain()],
                **({"participants": tables} if (tables := _dropping(one)) else {}),
            }
            for one in run.candidates or (run,)
        ],
    }
    if run.candidates:
        described["chosen"] = chosen_file(choice_id(run))
    if validation := _validation(run):
        described["validation"] = validation
    if "retention" in experiment.results:
        described["retention"] = _retention(run)
    if "clients" in experiment.results:
        described["clients"] = _clients(run)
    if experiment.table.also and (over_rounds := _over_rounds(run)):
        described["over_rounds"] = over_rounds
    return described


def _retention(run: Run) -> list[File]:
    """Return the measures of a federated run, or of each of its candidates."""
    tried = run.candidates or (run,)
    return [
        RETENTION(one.recipe, one.length.rounds) for one in tried if isinstance(one.recipe, Recipe)
    ]


def _clients(run: Run) -> list[str]:
    """Return the accuracies by client and class of a federated run, or of its candidates."""
    tried = run.candidates or (run,)
    recipes = ((one.recipe, one.length.rounds) for one in tried)
    return [CLIENT_ACCURACY(recipe, last) for recipe, last in recipes if isinstance(recipe, Recipe)]


def _over_rounds(run: Run) -> str | None:
    """Return the metrics of a run's aggregator during its training, if it ends in a trained one."""
    recipe = run.recipe
    if not isinstance(recipe, OneShotRecipe) or run.candidates or recipe.distillation is not None:
        return None
    if not recipe.aggregator.trained or recipe.aggregator_training is None:
        return None
    return one_shot.one_shot_metrics_file(recipe, run.length.role, "over_rounds")


def _part(run: Run) -> Raw:
    kinds = {Recipe: "federated", LocalRecipe: "local", OneShotRecipe: "one_shot"}
    return {"length": canonical(run.length), kinds[type(run.recipe)]: canonical(run.recipe)}


def _parts(run: Run) -> Iterator[Run]:
    """Yield the runs that a run, or each of its candidates, consists of."""
    for one in run.candidates or (run,):
        yield from one.chain()


def _validation(run: Run) -> list[str]:
    """Return the validation metrics of a federated run, or of its candidates."""
    tried = run.compared or (run,)
    if not all(isinstance(one.recipe, Recipe) and one.recipe.validation for one in tried):
        return []
    return [metrics_of(one.in_role("validation")) for one in tried]
