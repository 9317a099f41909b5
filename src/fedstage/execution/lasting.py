"""``fedstage scores``: results that are made from files of scores alone, without the runs."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedstage.errors import FedstageError
from fedstage.execution.measures import absent_measures, load_measures
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.library import experiment_names
from fedstage.experiments.targets import describe, results_of
from fedstage.plan.results import RESULTS, files_at
from fedstage.plan.runs import split_target
from fedstage.plan.source import stage_fingerprint
from fedstage.plan.stages import STAGES, files_of_result
from fedstage.results.runs_file import SEED
from fedstage.results.tables.exact import write_csv
from fedstage.results.tables.score_file import ScoreFile, key_of, read_score_file
from fedstage.results.tables.score_merging import merge
from fedstage.settings.config_file import Config
from fedstage.settings.merging import Raw
from fedstage.settings.suggestions import suggest
from fedstage.settings.validation import validate
from fedstage.stages import call
from fedstage.storage.files import save_json
from fedstage.storage.identity import making
from fedstage.storage.tables import save_table
from fedstage.storage.yaml_files import load_yaml

#: The stages that need only scores.
_OF_SCORES = ("tables", "figures", "comparison", "sweep")
#: The options that need partitions as well.
_OF_PARTITIONS = ("partition", "samples")


def scores(
    what: str,
    files: Sequence[Path],
    output: Path,
    target: str | None,
    prefer: str | None,
    measurements: Sequence[Path],
    config: Path,
    workflow: Path,
) -> str:
    """Merge files of scores into one, or present a target's; return what was done.

    Raises
    ------
    FedstageError
        If files cannot be merged, an option is missing, or scores belong to settings other than the
        target's.
    """
    merged = merge([read_score_file(path) for path in files], prefer_first=prefer is not None)
    if what == "merge":
        write_csv(output, merged.rows, merged.columns)
        return f"{len(merged.runs())} runs are in {output}"
    if target is None:
        raise FedstageError("--target: missing, an experiment or EXPERIMENT/SCALE is required")
    checked = validate(Config, load_yaml(config), str(config))
    checked = checked.model_copy(update={"targets": []})  # which may be other experiments
    return present(merged, target, output, measurements, checked, workflow)


def present(
    merged: ScoreFile,
    target: str,
    output: Path,
    measurements: Sequence[Path],
    config: Config,
    workflow: Path,
) -> str:
    """Write the tables, curves and claims of a target, for its runs that have scores.

    Files have the names, below `output`, and the bytes that the workflow gives them for the same
    runs. `measurements` are ``results/*/EXPERIMENT/SCALE.runs.parquet``, tables with other measures
    of the runs, which some claims are about.
    """
    experiment, scale = split_target(target)
    known = experiment_names(config, workflow)
    if experiment not in known:
        raise FedstageError(f"{target}: no such experiment{suggest(experiment, known)}")
    catalogue = resolve_all(config, workflow, [experiment], seeds_of(merged))
    description = describe(catalogue, experiment, scale, "runs")
    absent = len(description["runs"])
    description["runs"] = with_scores(description, merged)
    absent -= len(description["runs"])
    at, wanted = f"{experiment}/{scale}", set(results_of(catalogue, target))
    with TemporaryDirectory() as folder:
        runs, listed = Path(folder, "runs.json"), Path(_made("run_scores", at, output)["scores"])
        save_json(runs, description)
        write_csv(listed, _in_order(description, merged), merged.columns)
        read: Raw = {"runs": runs, "scores": listed}
        for stage in _OF_SCORES:
            if wanted.issuperset(files_of_result(stage, experiment, scale)):
                _run(stage, read | _made(stage, at, output))
        lacking = []
        if wanted.issuperset(files_of_result("claims", experiment, scale)):
            lacking = _judge(catalogue, at, read, measurements, output, Path(folder))
    notes = [f"{absent} runs of {target} have no scores"] * bool(absent)
    return "\n".join([f"{len(description['runs'])} runs are in {output}", *notes, *lacking])


def _run(stage: str, options: Raw) -> None:
    """Run a stage, whose files state its source as the workflow's files do."""
    with making(stage_fingerprint(stage)):
        call(stage, options)


def seeds_of(scores: ScoreFile) -> list[int]:
    """Return the seeds of all runs in a file."""
    found = dict.fromkeys(row[SEED] for row in scores.rows)
    if wrong := [seed for seed in found if not seed.isdecimal()]:
        raise FedstageError(f"{scores.name}: seed = {wrong[0]!r}: must be an integer from 0 on")
    return [int(seed) for seed in found]


def with_scores(description: Raw, scores: ScoreFile) -> list[Raw]:
    """Return the runs of a description that have scores; FedstageError if others have some."""
    there = scores.runs()
    runs = {key_of(run["settings"], scores.axes): run for run in description["runs"]}
    for key, rows in there.items():
        if key not in runs:
            raise FedstageError(
                f"{scores.name}: {scores.show(rows[0])}: no run of {description['experiment']} at "
                f"scale {description['scale']}"
            )
    return [run for key, run in runs.items() if key in there]


def _in_order(description: Raw, scores: ScoreFile) -> list[dict[str, str]]:
    """Return the rows of a file in the order of the runs, as the workflow writes them."""
    there = scores.runs()
    keys = (key_of(run["settings"], scores.axes) for run in description["runs"])
    return [row for key in keys for row in there[key]]


def _made(stage: str, at: str, output: Path) -> Raw:
    """Return the options of a stage's files that follow from scores, below the folder `output`."""
    made = {
        option: [str(output / file) for file in files_at(path, *at.split("/"))]
        for option, path in STAGES[stage].outputs.items()
        if option not in _OF_PARTITIONS
    }
    return {option: files if len(files) > 1 else files[0] for option, files in made.items()}


def _judge(
    catalogue: Catalogue,
    at: str,
    read: Raw,
    measurements: Sequence[Path],
    output: Path,
    folder: Path,
) -> list[str]:
    """Judge claims, and return a line about each kind of measures that is not given.

    Claims about measures that are not given are left out. `folder` is for temporary files.
    """
    experiment, _, scale = at.partition("/")
    definitions = describe(catalogue, experiment, scale, "claims")
    tables = load_measures(measurements)
    absent = absent_measures({claim.get("metric") for claim in definitions["claims"]}, tables)
    metrics = set().union(*absent.values())
    listed = [claim for claim in definitions["claims"] if claim.get("metric") not in metrics]
    save_json(folder / "claims.json", definitions | {"claims": listed})
    paths = [folder / f"{number}.parquet" for number in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        save_table(path, dict(zip(table.column_names, table.columns, strict=True)), table.schema)
    more = {"definitions": folder / "claims.json", "measurements": paths}
    if listed:
        _run("claims", read | more | _made("claims", at, output))
    return [
        f"claims about {', '.join(sorted(names))} are not judged without --measurements "
        f"{RESULTS}/{kind}/{at}.runs.parquet"
        for kind, names in absent.items()
    ]
