"""The sections of a report."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd

from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns, Part
from fedstage.protocol.digests import canonical
from fedstage.results.claims.judging import Judged
from fedstage.results.claims.report import report_parts
from fedstage.results.report.origins import Origin, shared_settings
from fedstage.results.report.page import Section, facts, folded, picture, preformatted, wide
from fedstage.results.tables import html
from fedstage.results.tables.labels import (
    METHOD,
    head_of,
    place_for_people,
    show_value,
)
from fedstage.results.tables.layout import Layout
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.base import Choice
from fedstage.settings.merging import flatten
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.optimisation import Client
from fedstage.settings.recipes import LocalRecipe, Recipe

# --- settings -------------------------------------------------------------------------------------


def main_settings(experiment: ExperimentRuns) -> dict[str, str]:
    """Return rounds, clients, participants, local training, model, partition and seeds.

    If runs differ, each value is listed with its methods, unless it also varies within a method.
    """
    found: dict[str, dict[str, list[str]]] = {}  # setting -> value -> methods
    for run in experiment.runs:
        method = str(run.settings.get(METHOD, ""))
        for name, value in _settings(run):
            methods = found.setdefault(name, {}).setdefault(value, [])
            methods.append(experiment.labels.get(method, method))
    told = {name: _told(values) for name, values in found.items()}
    seeds = dict.fromkeys(str(run.settings[SEED]) for run in experiment.runs)
    return told | {"seeds": ", ".join(seeds)}


def _settings(run: ExperimentRun) -> Iterator[tuple[str, str]]:
    """Yield a run's settings and their values, without settings that its kind of run lacks."""
    parts = run.candidates[run.which()].parts
    recipe = parts[-1].recipe
    if rounds := " + ".join(str(part.length.rounds) for part in parts if _has_rounds(part)):
        yield "rounds", rounds
    yield "clients", str(recipe.clients)
    if isinstance(recipe, Recipe):
        yield "participants of a round", str(recipe.participants)
    yield "local training", _duration(recipe.client)
    yield "batch size", str(recipe.client.batch_size)
    yield "learning rate", show_value(recipe.client.learning_rate)
    yield "model", " and ".join(dict.fromkeys(map(_choice, _models(recipe))))
    yield "data", _choice(recipe.data)
    yield "partition", _choice(recipe.partition)


def _told(values: Mapping[str, Sequence[str]]) -> str:
    if len(values) == 1:
        return next(iter(values))
    methods = {value: list(dict.fromkeys(names)) for value, names in values.items()}
    every = [name for names in methods.values() for name in names]
    if len(every) > len(set(every)):
        return ", ".join(methods)
    return ", ".join(f"{value} ({', '.join(names)})" for value, names in methods.items())


def _has_rounds(part: Part) -> bool:
    return not isinstance(part.recipe, LocalRecipe)


def _duration(client: Client) -> str:
    unit, count = ("step", client.steps) if client.epochs is None else ("epoch", client.epochs)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _models(recipe: Recipe | OneShotRecipe | LocalRecipe) -> list[Model]:
    """Return the main model, and the models of groups or clients."""
    return [recipe.model, *recipe.architectures]


def _choice(chosen: Choice) -> str:
    """Write a choice with its settings, without defaults: ``dirichlet alpha 0.1``."""
    settings = flatten(canonical(chosen))
    name = settings.pop("name")
    words = (key if value == "{}" else f"{key} {value}" for key, value in settings.items())
    return " ".join([name, *words])


# --- sections -------------------------------------------------------------------------------------

#: The anchor of the details of a table's cell, followed by its place.
CELL = "cell"
#: Titles of other results.
_RESULTS = {"communication": "Communication", "costs": "Costs", "retention": "Forgetting"}


def table_section(layout: Layout, source: str) -> Section:
    """Return the table, whose cells link to the runs behind them."""
    hint = "Click a number to see its runs, a column header to sort."
    table = wide(html.result_grid(layout, CELL), lines=True)
    parts = [html.paragraph(f"{source} {hint}"), table, _notes(layout.legend)]
    return Section("table", "Table", parts)


def result_sections(files: Sequence[Path]) -> list[Section]:
    """Return a section for each document among some files, with the figures that follow it.

    Figures before the first document have a section of their own.
    """
    starts = [place for place, file in enumerate(files) if file.suffix == ".html"]
    return [
        Section("figures", "Figures", _pictures(files[: min(starts, default=None)])),
        *(
            _result_section(files[start], files[start + 1 : end])
            for start, end in pairwise([*starts, len(files)])
        ),
    ]


def _result_section(document: Path, figures: Sequence[Path]) -> Section:
    name = document.parts[-3]
    body = html.body_of(document.read_text(encoding="utf-8"))
    return Section(name, _RESULTS[name], [*_pictures(figures), wide(body, lines=True)])


def _pictures(files: Sequence[Path]) -> list[str]:
    """Return figures with their captions, which are in turn among some files."""
    return [
        picture(drawn.read_bytes(), caption.read_text(encoding="utf-8").strip())
        for drawn, caption in zip(files[::2], files[1::2], strict=True)
    ]


def claims_section(judged: Judged) -> Section:
    """Return the claims with their verdicts."""
    parts = report_parts(judged.judgements, judged.source, judged.experiment.notes, html)
    every = [wide(part) if part.startswith("<table") else part for part in parts]
    return Section("claims", "Claims", every)


def runs_section(
    experiment: ExperimentRuns, frame: pd.DataFrame, origins: Sequence[Origin]
) -> Section:
    """Return, for each cell of the table, what `fedstage why` reports about its runs."""
    last = last_rounds(frame).set_index(RUN)[experiment.metric]
    shared, parts = shared_settings(origins), []
    numbers = {id(run): number for number, run in enumerate(experiment.runs)}
    for place, runs in enumerate(experiment.places().values()):
        inside = [
            part
            for run in runs
            for number in [numbers[id(run)]]
            for part in _run(run.settings, last[number], origins[number], shared)
        ]
        where = place_for_people(runs[0].settings, experiment)
        title = ", ".join(f"{axis} = {value}" for axis, value in where.items())
        parts.append(folded(f"{CELL}-{place}", title, inside))
    intro = (
        f"For each cell of the table its runs ({head_of(experiment.metric)}): where the metrics "
        "are, what made them when and from which files, and what it took."
    )
    return Section("runs", "Where the numbers come from", [html.paragraph(intro), *parts])


def settings_section(experiment: ExperimentRuns, origins: Sequence[Origin]) -> Section:
    """Return the settings that people look for, and all settings of recipes that all runs share."""
    shared = shared_settings(origins)
    lines = [f"{key}: {value}" for key, value in shared.items()]
    body = preformatted(lines) if lines else html.paragraph("None.")
    parts = [facts(main_settings(experiment)), html.heading("Settings that all runs share")]
    parts.append(html.paragraph("As their recipes have them, without defaults:"))
    return Section("settings", "Settings", [*parts, body])


def _run(
    settings: Mapping[str, object], value: float, origin: Origin, shared: Mapping[str, str]
) -> list[str]:
    """Return the details of a run."""
    head = html.heading(f"seed {settings[SEED]}: {value:.2f}")
    if origin.fault:
        return [head, html.paragraph(origin.fault)]
    own = [f"{key}: {value}" for key, value in origin.settings.items() if key not in shared]
    return [
        head,
        facts({"metrics": f"`{origin.file}`", **origin.facts}),
        html.paragraph("Its own settings:"),
        preformatted(own or ["none"]),
        html.paragraph("It was made from:"),
        preformatted(origin.files),
    ]


def _notes(lines: Sequence[str]) -> str:
    return html.items(lines).replace("<ul>", '<ul class="notes">', 1)
