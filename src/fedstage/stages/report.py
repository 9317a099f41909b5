"""Stage `report`: one HTML file with all results of an experiment at a scale."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.plan.sharing import describe_sharing
from fedstage.protocol.digests import canonical
from fedstage.results.report import Section, render_report
from fedstage.results.tidy import Tidy, read_tidy
from fedstage.settings.merging import flatten
from fedstage.stages.figure import OF_SCORES
from fedstage.stages.table import tables_of
from fedstage.storage.files import load_json, save_text
from fedstage.storage.records import find_artefact

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
    results = load_json(wanted)["results"]

    def section(shown: str, title: str, *figures: str) -> Section:
        tables = tables_of(shown, measured, spent, definitions, runs)
        return Section(title, tables, {name: OF_SCORES[name](measured) for name in figures})

    sections = [section("tables", "Table", *_figures(measured))]
    for shown, title in _SECTIONS.items():
        if shown in results:
            sections.append(section(shown, title, *([shown] if shown in OF_SCORES else [])))
    if definitions is not None:
        sections.append(section("claims", "Claims"))
    parts = [one.candidates[one.which()].parts[-1] for one in experiment.runs]
    methods = len({str(one.settings["method"]) for one in experiment.runs})
    shared = describe_sharing(
        [
            [(part.recipe, part.length.rounds) for part in one.candidates[one.which()].parts]
            for one in experiment.runs
        ],
        methods,
    )
    about = {
        "Made by": f"`snakemake --cores all {output}`",
        "Versions": "; ".join(dict.fromkeys(_versions(experiment.runs))) or "not recorded",
        **({"Shared work": shared} if shared else {}),
    }
    settings = _common([flatten(canonical(p.length) | canonical(p.recipe)) for p in parts])
    save_text(output, render_report(measured, sections, about=about, settings=settings))


def _figures(scores: Tidy) -> Iterator[str]:
    """Yield the figures below the table."""
    header = scores.header
    yield "accuracy"
    if header.published is not None and any(cell.published for cell in header.cells):
        yield "published"
    if header.over is not None:
        yield "over"
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
