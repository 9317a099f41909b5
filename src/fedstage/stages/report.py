"""Stage `report`: one HTML file with all results of an experiment at a scale."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun, last_part, read_runs_file
from fedstage.plan.graph import recipe_file
from fedstage.plan.results import result_files
from fedstage.plan.runs import describe_sharing, main_folder
from fedstage.protocol.digests import canonical
from fedstage.results.curves import draw_bytes, draw_differences, draw_forgetting, draw_rounds
from fedstage.results.labels import axis_label, metric_head, place_label, show_value
from fedstage.results.points import (
    draw_ensembles,
    draw_partition,
    draw_published,
    draw_sweep,
    partition_counts,
)
from fedstage.results.report import Section, render_report
from fedstage.results.style import save_figure
from fedstage.results.table import Table
from fedstage.results.tidy import METHOD, Tidy, place_of, read_tidy
from fedstage.settings.merging import flatten
from fedstage.settings.scores import Axis
from fedstage.stages.table import names_of, tables_of
from fedstage.storage.files import load_json, save_text
from fedstage.storage.records import find_artefact
from fedstage.storage.tables import frame_of, load_table

#: Figures of scores, by what they show.
OF_SCORES: dict[str, Callable[[Tidy], Figure]] = {
    "accuracy": draw_rounds,
    "published": draw_published,
    "over": draw_sweep,
    "differences": draw_differences,
    "ensembles": draw_ensembles,
    "communication": draw_bytes,
    "costs": partial(draw_bytes, last=True),
    "retention": draw_forgetting,
}


def figure(*, runs: Path, scores: Path | None = None, shown: str, files: list[Path]) -> None:
    """Draw what is `shown`, to a file of each format."""
    if shown == "partition":
        drawn = draw_partition(partitions_of(read_runs_file(runs).runs))
    else:
        assert scores is not None, "an input of all other figures"
        drawn = OF_SCORES[shown](read_tidy(scores))
    for file in files:
        save_figure(drawn, file)


#: Captions of figures, whose legends say what bands and bars are.
_CAPTIONS = {
    "accuracy": "{metric} by round",
    "published": "{metric} as published and as measured",
    "over": "{metric} by {over}",
    "differences": "{metric}: differences to {baseline}, by round",
    "ensembles": "What ensembles gain over the mean accuracy of their members",
    "communication": "{metric} by the bytes that a client has sent and received",
    "costs": "{metric} by all bytes that a client sends and receives",
    "retention": "What is forgotten, by round",
}
#: The sections below the table and its figures: what they show, and their titles.
_SECTIONS = {
    "communication": "Communication",
    "costs": "Costs",
    "round_times": "Seconds of a round",
    "retention": "Forgetting",
    "clients": "Clients and classes",
}


def report(
    *,
    runs: Path,
    wanted: Path,
    scores: Path,
    costs: Path | None = None,
    definitions: Path | None = None,
    output: Path,
) -> None:
    """Write the report: table, figures, other results, claims, settings and origins of numbers.

    It needs no network and no other file. Versions are read from the records of jobs, so that two
    reports of the same results may differ.
    """
    experiment, measured = read_runs_file(runs), read_tidy(scores)
    spent = read_tidy(costs) if costs else None
    results, head = load_json(wanted)["results"], measured.header
    told = {
        "metric": metric_head(head.metric),
        "over": axis_label(head.over or ""),
        "baseline": place_label([METHOD], {METHOD: head.baseline}, head),
    }

    def section(shown: str, title: str, *figures: str) -> Section:
        tables = tables_of(shown, measured, spent, definitions, runs)
        drawn = {_CAPTIONS[name].format(**told): OF_SCORES[name](measured) for name in figures}
        return Section(title, tables, drawn)

    sections = [section("tables", "Table", *figures_of(measured))]
    for shown, title in _SECTIONS.items():
        if shown in results:
            sections.append(section(shown, title, *([shown] if shown in OF_SCORES else [])))
    if definitions is not None:
        sections.append(section("claims", "Claims"))
    sections.append(_partition(experiment.runs))
    parts = [last_part(run) for run in experiment.runs]
    every = [[part for of in run.candidates for part in of.parts] for run in experiment.runs]
    shared = describe_sharing(
        [[(part.recipe, part.length.rounds) for part in of] for of in every],
        len({str(run.settings["method"]) for run in experiment.runs}),
    )
    made = [str(path) for path in (scores, costs) if path]
    made += result_files("table", head.experiment, head.scale, "tables") * ("table" in results)
    about = {
        "Made by": f"`snakemake --cores all {output}`",
        "Files": ", ".join(f"[{file}]({_path(file, output)})" for file in made),
        "Versions": "; ".join(dict.fromkeys(_versions(experiment.runs))) or "not recorded",
        **({"Shared work": shared} if shared else {}),
    }
    files = {
        place_of(run.settings.get(axis) for axis in measured.run): _path(recipe, output)
        for run, part in zip(experiment.runs, parts, strict=True)
        for recipe in [recipe_file(main_folder(part.recipe))]
    }
    settings = _common([flatten(canonical(p.length) | canonical(p.recipe)) for p in parts])
    page = render_report(measured, sections, about=about, settings=settings, files=files)
    save_text(output, page)


def _partition(runs: list[ExperimentRun]) -> Section:
    """Return how many samples of each class each client has, drawn and as tables."""
    partitions = partitions_of(runs)
    tables = [
        Table(f"As a table{f': {name}' if name else ''}", shown.astype(str), 1, shown)
        for name, counts in partitions.items()
        for shown in [counts.T.rename_axis("Client").reset_index()]
    ]
    drawn = draw_partition(partitions)
    return Section("Partition", tables, {"Samples, of the first seed": drawn}, folded=True)


def _path(file: str, output: Path) -> str:
    return Path(os.path.relpath(file, output.parent)).as_posix()


def figures_of(scores: Tidy) -> Iterator[str]:
    """Yield the figures below the table."""
    header = scores.header
    yield "accuracy"
    if header.published is not None and any(cell.published for cell in header.cells):
        yield "published"
    if header.over is not None:
        yield "over"
    if header.baseline is not None:
        yield "differences"
    if scores.frame["measure"].eq("disagreement").any():
        yield "ensembles"


def _versions(runs: list[ExperimentRun]) -> Iterator[str]:
    for run in runs:
        try:
            versions = find_artefact(Path(run.metrics)).job["versions"]
        except FedstageError:  # the logs may have been deleted
            continue
        yield ", ".join(f"{name} {version}" for name, version in versions.items())


def _common(settings: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return the settings that all runs share."""
    first, *others = settings
    return {
        key: str(value)
        for key, value in first.items()
        if key != "seed" and all(other.get(key) == value for other in others)
    }


# --- partitions -----------------------------------------------------------------------------------


def partitions_of(runs: Sequence[ExperimentRun]) -> dict[str, pd.DataFrame]:
    """Return the samples of each client and class of each partition of the first run's seed.

    A partition is named by the settings that tell it from the others, if there are several.
    """
    points: dict[str, list[dict[str, Axis]]] = {}
    for run in runs:
        if run.settings[SEED] == runs[0].settings[SEED]:
            points.setdefault(run.partition, []).append(run.settings)
    groups = list(points.values())
    axes = [axis for axis in runs[0].settings if _tells_apart(axis, groups)]
    labels = [
        ", ".join(f"{axis_label(axis)} = {show_value(of[0][axis])}" for axis in axes)
        for of in groups
    ]
    if len(set(labels)) < len(labels):  # no settings distinguish them: name the folders
        labels = [Path(file).parent.name for file in points]
    names = names_of(runs)
    tables = (frame_of(load_table(path, ["client", "label", "samples"])) for path in points)
    counts = (partition_counts(samples, **names) for samples in tables)
    return dict(zip(labels, counts, strict=True))


def _tells_apart(axis: str, groups: Sequence[Sequence[dict[str, Axis]]]) -> bool:
    """Whether a setting is constant within each partition, but not across partitions."""
    values = [{str(point.get(axis)) for point in group} for group in groups]
    return all(len(value) == 1 for value in values) and any(a != b for a, b in pairwise(values))
