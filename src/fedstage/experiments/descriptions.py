"""Descriptions of experiments for the stages of results, as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, choice_id, metrics_of
from fedstage.experiments.claims import Sourced, distinct_cells
from fedstage.experiments.grid import by_value
from fedstage.experiments.published import PAPER
from fedstage.experiments.published_rows import without_seed
from fedstage.plan import data_files, one_shot
from fedstage.plan.graph import files_in
from fedstage.plan.results import chosen_file
from fedstage.plan.runs import Run
from fedstage.plan.scores import client_accuracy, retention
from fedstage.plan.traffic import read_files, traffic_files
from fedstage.protocol.digests import canonical
from fedstage.protocol.privacy import example_privacy
from fedstage.results.comparisons import comparisons
from fedstage.settings.cells import show_point
from fedstage.settings.experiments import MEMORY, PARAMETERS, RATIO, SIZE, Bands, Experiment
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe

#: What a paper reports of communication: the keys of its source, and of a run's number, and the
#: factor from the one number to the other.
_COMMUNICATED = {
    MEMORY: ("memory", "memory_mib", 1),
    SIZE: ("memory", "memory_mib", 4 / 2**20),
    PARAMETERS: ("params", "published_params", 1),
    RATIO: ("ratio", "published_ratio", 1),
}

#: Number of seeds from which bands show the interval of the mean, unless an experiment chooses.
_FEWEST_OF_INTERVALS = 5


def describe_runs(catalogue: Catalogue, experiment: str, scale: str) -> Raw:
    """Return the runs file of an experiment at a scale: see `fedstage.experiments.runs_file`."""
    definition = catalogue.experiments[experiment]
    resolved = catalogue.runs[experiment, scale]
    runs = [_described(run, definition) for run in resolved]
    head = {"experiment": experiment, "scale": scale, **_head(definition, resolved)}
    shown = {str(run.axes["method"]): canonical(run.style) for run in resolved}
    head["labels"] = {name: style.pop("label") for name, style in shown.items() if "label" in style}
    head["styles"] = {name: style for name, style in shown.items() if style}
    if published := catalogue.published.get((experiment, scale)):
        # Claims look at published numbers by themselves; tables and figures show what compares.
        if published.comparable:
            names = ("measured_at", "published_at")
            head |= {"published": published.source}
            head |= {name: getattr(published, name) for name in names}
        numbers = zip(runs, published.numbers, published.others, strict=True)
        runs = [{**run, "published": one, "published_in": others} for run, one, others in numbers]
    regimes = [one.claim.regime for one in _sourced(catalogue, experiment) if one.claim.regime]
    if regimes:
        head["regime"] = regimes[0].model_dump(mode="json", exclude_defaults=True)
    communicated = definition.communication.published
    found = catalogue.published_communication.get((experiment, scale))
    # A ratio depends on no size.
    ratio = communicated is not None and communicated.metric == RATIO
    if communicated and found and (found.comparable or ratio):
        of, key, factor = _COMMUNICATED[communicated.metric]
        head[of] = found.source
        values = [number and factor * number["value"] for number in found.numbers]
        runs = [{**run, key: value} for run, value in zip(runs, values, strict=True)]
    return {**head, "runs": runs}


def describe_results(catalogue: Catalogue, experiment: str) -> Raw:
    """Return which results an experiment has, and whether claims are judged: what few results show.

    In a file of its own, for one more result makes no other one again.
    """
    results = catalogue.experiments[experiment].results
    return {"results": results, "judged": bool(claims_on(catalogue, experiment))}


def _head(experiment: Experiment, runs: Sequence[Run]) -> Raw:
    table = experiment.table
    head: Raw = {
        "title": experiment.title,
        "rows": table.rows,
        "columns": table.columns,
        "metric": table.metric,
        "also": table.also,
        "over": table.over,
        "baseline": table.baseline,
        "notes": table.notes or None,
        "reach": by_value(experiment.communication.reach) or experiment.communication.reach,
        "bands": experiment.figures.bands or _bands(runs),
        "simulation": canonical(experiment.simulation),
        "traffic": not {"communication", "costs"}.isdisjoint(experiment.results) or None,
    }
    return {key: value for key, value in head.items() if value is not None}


def _bands(runs: Sequence[Run]) -> Bands:
    """Return what the bands of a figure show by default, the same for all runs.

    The interval of the mean of three seeds is 2.5 deviations to each side: it would fill a panel.
    """
    seeds = Counter(show_point(without_seed(run.axes)) for run in runs)
    return "interval" if min(seeds.values()) >= _FEWEST_OF_INTERVALS else "deviation"


def claims_on(catalogue: Catalogue, experiment: str) -> list[Raw]:
    """Return the claims on an experiment, for JSON."""
    return [
        sourced.claim.model_dump(mode="json", exclude_defaults=True)
        for sourced in _sourced(catalogue, experiment)
    ]


def claims_to_judge(catalogue: Catalogue, experiment: str) -> Raw:
    """Return the claims on an experiment for the stage `claims`, for JSON: `ClaimsToJudge`.

    FedstageError if there is none.
    """
    if not (claims := claims_on(catalogue, experiment)):
        raise FedstageError(f"{experiment}: no claim is about it")
    families: dict[str, Raw] = {}
    for one in _sourced(catalogue, experiment):
        if one.claim.primary:
            family = families.setdefault(one.where, {"claims": [], "primary": one.primary})
            family["claims"].append(one.claim.id)
    return {
        "claims": claims,
        "comparisons": _comparisons(catalogue, experiment),
        "families": list(families.values()),
    }


def _sourced(catalogue: Catalogue, experiment: str) -> list[Sourced]:
    return [one for one in catalogue.claims if one.claim.experiment == experiment]


def _comparisons(catalogue: Catalogue, experiment: str) -> dict[str, int]:
    """Return the number of comparisons of each claim on an experiment at the paper's scale."""
    cells = distinct_cells([run.axes for run in catalogue.runs.get((experiment, PAPER), [])])
    claims = [one.claim for one in _sourced(catalogue, experiment)]
    return {claim.id: len(comparisons(claim, cells)) for claim in claims} if cells else {}


def files_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return all files that the table of communication reads, except metrics."""
    runs = catalogue.runs[experiment, scale]
    parts = (part for run in runs for tried in _tried(run) for part in tried.chain())
    read = (path for part in parts for path in read_files(part.recipe, part.length))
    chosen = (chosen_file(choice_id(run)) for run in runs if run.candidates)
    return list(dict.fromkeys([*read, *chosen]))


def files_of_rounds(catalogue: Catalogue) -> Iterator[str]:
    """Yield the files of rounds that results read apart from metrics: tables and main models."""
    for (name, _), runs in catalogue.runs.items():
        results = catalogue.experiments[name].results
        for tried in (tried for run in runs for tried in _tried(run)):
            recipe, last = tried.recipe, tried.length.rounds
            if {"communication", "costs"} & set(results):
                for part in tried.chain():
                    yield from traffic_files(part.recipe, part.length.rounds)
            if {"table", "costs"} & set(results):
                yield from _counted(tried)
            if "retention" in results:
                yield from files_in(retention.job(recipe, last).inputs)
            if "clients" in results:
                yield from files_in(client_accuracy.job(recipe, last).inputs)


def _tried(run: Run) -> tuple[Run, ...]:
    """Return a run's candidates, or the run itself."""
    return run.candidates or (run,)


def _counted(run: Run) -> list[str]:
    """Return the participants of all rounds of a run, if its table depends on them.

    It does if updates may be dropped, or if samples lose privacy in each round.
    """
    return [
        path
        for part in run.chain()
        if isinstance(part.recipe, Recipe) and _counts(part.recipe)
        for path in traffic_files(part.recipe, part.length.rounds)
    ]


def _counts(recipe: Recipe) -> bool:
    return example_privacy(recipe) is not None or recipe.on_divergence == "drop"


def _described(run: Run, experiment: Experiment) -> Raw:
    """Return the description of a run, without keys that it does not have."""
    tried, results = _tried(run), experiment.results
    lasts = [(candidate.recipe, candidate.length.rounds) for candidate in tried]
    described: Raw = {
        "settings": run.axes,
        "metrics": metrics_of(run),
        "partition": data_files.label_histogram(run.recipe),
        "info": data_files.data_file(run.recipe.data, "info"),
        "candidates": [
            {
                "values": candidate.axes if run.candidates else {},
                "parts": [_part(part) for part in candidate.chain()],
                **({"participants": tables} if (tables := _counted(candidate)) else {}),
            }
            for candidate in tried
        ],
        "chosen": chosen_file(choice_id(run)) if run.candidates else None,
        "validation": _validation(run),
        "retention": [retention(*last) for last in lasts] if "retention" in results else None,
        "clients": [client_accuracy(*last) for last in lasts] if "clients" in results else None,
        "over_rounds": _over_rounds(run) if "maximum" in experiment.table.also else None,
    }
    return {key: value for key, value in described.items() if value}


def _over_rounds(run: Run) -> str | None:
    """Return the metrics of a run's aggregator during its training, if it trains one at the end."""
    recipe = run.recipe
    if not isinstance(recipe, OneShotRecipe) or run.candidates or recipe.distillation is not None:
        return None
    if not recipe.aggregator.trained or recipe.aggregator_training is None:
        return None
    return one_shot.one_shot_metrics_file(recipe, run.length.role, "over_rounds")


def _part(run: Run) -> Raw:
    kinds = {Recipe: "federated", LocalRecipe: "local", OneShotRecipe: "one_shot"}
    return {"length": canonical(run.length), kinds[type(run.recipe)]: canonical(run.recipe)}


def _validation(run: Run) -> list[str]:
    """Return the validation metrics of a federated run, or of its candidates."""
    scored = run.compared or (run,)
    if not all(isinstance(run.recipe, Recipe) and run.recipe.validation for run in scored):
        return []
    return [metrics_of(candidate.in_role("validation")) for candidate in scored]
