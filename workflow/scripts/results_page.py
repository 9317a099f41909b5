"""Make `workflow/docs/results` from committed scores: README.md, and each table and its claims.

    uv run python workflow/scripts/results_page.py

A folder EXPERIMENT has `scores.parquet`, a run's `results/tables/EXPERIMENT/study.scores.parquet`,
and a folder EXPERIMENT/SCALE the scores of another scale. The first ten seeds count. The page has a
picture of the first experiment of each paper, if there is any in the regime of the paper.

To add scores of another machine, or of more seeds, join files, with one row for each key:

    files = ["workflow/docs/results/EXPERIMENT/scores.parquet", "study.scores.parquet"]
    scores = pd.concat(map(pd.read_parquet, files))
    key = scores.columns.difference(["value", "settings", "source", "machine", "seconds"])
    scores.drop_duplicates([*key]).to_parquet(files[0], compression="zstd")

Scores of other settings than the experiment's are refused.
"""

from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.claims import Sourced, distinct_cells, load_claims
from fedstage.experiments.descriptions import claims_on, claims_to_judge, describe_runs
from fedstage.experiments.published import PAPER, measured_at
from fedstage.experiments.published_rows import load_papers
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.results.claims import (
    bound_text,
    claim_tables,
    in_published,
    judge_claims,
    measured_text,
    own_tests,
    published_text,
    verdict_text,
)
from fedstage.results.documents import grid, write_tables
from fedstage.results.labels import NOTHING
from fedstage.results.style import save_figure
from fedstage.results.table import Table, score_table
from fedstage.results.tidy import SEED, Tidy, last_rounds, place_of, read_tidy
from fedstage.results.verdicts import NOT_MEASURED, Effect, Judgement, correct, judge
from fedstage.settings.config_file import Config
from fedstage.settings.scores import RETAINED, Claim, ClaimsToJudge, Family
from fedstage.settings.validation import validate
from fedstage.stages.report import OF_SCORES, figures_of
from fedstage.stages.scores import PARTICIPANTS, header_of, settings_digest

WORKFLOW = Path(__file__).parents[1]
SEEDS = 10  # at most, the first ones of each experiment
HEADS = ["Claim", "Published", "The paper's own tests", "Measured [95 %]",
         "Measured in another regime", "Verdict"]  # fmt: skip
FILES = {"table": "table.md", "claims": "claims.md", "scores": "scores.parquet"}
ABOUT = """The papers' primary claims as published, and as measured by small studies on two cores.
The scales `study` and `converged` have smaller images and networks than the papers, and mostly more
seeds; with `converged`, a tenth of the images, clients train until they have converged, as in the
papers of FedSDD and FedEED. `workflow/scripts/results_page.py` makes this page from the files of
scores next to it, the [claims](../publishing.md#claims), and the papers' printed numbers. Claims
were written down before the results were known, unless their section says otherwise."""
LEGEND = f"""## How to read it

- **Published**: in how many of the paper's comparisons the claim holds, and the effect in its
  printed means, or in its text; of an average, also over the comparisons that were measured.
- **The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds, with Holm's
  correction over the claim's comparisons. Cells with the same printed numbers are one test.
- **Measured**: the mean effect over seeds with its 95 % interval, in the cells that the study has,
  from the first {SEEDS} seeds. A cell with a run that never reaches the goal of a claim is not
  measured, because the seeds that reach it are the fast ones.
- **Measured in another regime**: where clients or rounds have not converged, in papers that train
  until they have: claims of FedSDD, FedEED, Fed-ET, and of FENS on iterative methods.
- Of several comparisons, the smallest and the largest effect are shown, and how many of the
  paper's were measured; of a claim about an average, their mean.
- **Verdict**: as in the linked claims, on every comparison, or on the mean of a claim about an
  average; with Holm's correction over the primary claims of the paper. `practically nil` is within
  the margin of the claim. It is about the study: it neither confirms nor refutes a paper."""


class Judged(NamedTuple):
    """The scores of an experiment, and the claims on it."""

    scores: Tidy
    judgements: list[Judgement]


def measure(catalogue: Catalogue, folder: Path, name: str) -> Judged:
    """Write an experiment's table, and judge each claim on it, without correction."""
    scale = "study" if (name, "study") in catalogue.runs else "default"
    scale = scale if folder.name == name else folder.name
    experiment = validate(ExperimentRuns, describe_runs(catalogue, name, scale), name)
    scores = read_tidy(folder / "scores.parquet", sealed=False)
    scores = Tidy(scores.frame, header_of(experiment))
    check_settings(scores, experiment, folder)
    seeds = sorted(scores.frame[SEED].unique())[:SEEDS]
    runs = [run for run in catalogue.runs[name, scale] if run.recipe.seed in seeds]
    measured = measured_at(scale, runs) if scores.header.measured_at else ""
    header = scores.header.model_copy(update={"measured_at": measured})
    scores = Tidy(scores.frame[scores.frame[SEED].isin(seeds)], header)
    if "table" in catalogue.experiments[name].results:
        write_tables(folder / "table.md", [score_table(scores)])
    if not claims_on(catalogue, name):
        return Judged(scores, [])
    known = {None, *last_rounds(scores).columns}
    known |= RETAINED if PARTICIPANTS in set(scores.frame["role"]) else set()
    claims = validate(ClaimsToJudge, claims_to_judge(catalogue, name), name)
    claims.claims[:] = [claim for claim in claims.claims if claim.metric in known]
    return Judged(scores, judge_claims(claims, scores, corrected=False))


def check_settings(scores: Tidy, experiment: ExperimentRuns, folder: Path) -> None:
    """Refuse scores of runs that the experiment does not have, or of other settings."""
    runs = {
        place_of(run.settings.get(axis) for axis in scores.run): settings_digest(run)
        for run in experiment.runs
    }
    stated = scores.frame.drop_duplicates([*scores.run, "settings"])
    places = stated[scores.run].astype(object).itertuples(index=False, name=None)
    for place, found in zip(map(place_of, places), stated["settings"], strict=True):
        if place not in runs:
            raise FedstageError(f"{folder.name}: {place}: no run of the experiment")
        if found != runs[place]:
            raise FedstageError(
                f"{folder.name}: {place}: settings = {found}: must be {runs[place]}"
            )


def in_regime(found: dict[Path, Judgement], outside: bool = False) -> list[Path]:
    """Return the folders of scores in the regime that a claim is about, or outside of it."""
    return [at for at, one in found.items() if one.measured and one.outside == outside]


def line(catalogue: Catalogue, one: Sourced, found: dict[Path, Judgement]) -> list[str]:
    """Return a primary claim as published, and as measured if it was, by the scores' folders."""
    name, claim = one.claim.experiment, one.claim
    table, runs = catalogue.published.get((name, PAPER)), catalogue.runs.get((name, PAPER), [])
    numbers = table.numbers if table and claim.metric is None else None
    if table and claim.metric:
        numbers = [others.get(claim.metric) for others in table.others]
    printed = judge(claim, distinct_cells([run.axes for run in runs], numbers))
    published, verdict = in_published(printed), NOT_MEASURED
    if published != NOTHING:
        published += f": {ends(printed, published_text, lambda one: one.published)}"
    inside, outside = in_regime(found), in_regime(found, outside=True)
    for at in [*inside, *outside][:1]:
        verdict, mean = verdict_text(found[at]), found[at].mean
        if printed.mean and mean and len(mean.pairs) < len(printed.mean.pairs):
            published += f" ({published_text(claim, mean)}, {mean.label})"
    bound = "" if claim.than is not None else f":{bound_text(claim)}"
    linked = "; ".join(links(at, name) for at in dict.fromkeys([*inside, *outside, *found]))
    about = f"{claim.text} ({claim.place}{bound}) {linked}".strip()
    return [
        about,
        published,
        own_tests(printed),
        *("; ".join(shown(found[at]) for at in there) or NOTHING for there in (inside, outside)),
        verdict,
    ]


def shown(found: Judgement) -> str:
    """Write what was measured, in how many of the comparisons and with how many seeds."""
    text = ends(found, measured_text, lambda one: one.measured.mean)
    cells = f" in {found.measured} of {found.total}" if found.total > 1 else ""
    return f"{text}{cells}; {found.seeds} seed{'s' * (found.seeds != 1)}"


def ends(
    judgement: Judgement,
    text: Callable[[Claim, Effect], str],
    number: Callable[[Effect], float | None],
) -> str:
    """Write the smallest and the largest effect of a claim: ``+0.53 to +7.10``."""
    known = [effect for effect in judgement.effects if text(judgement.claim, effect) != NOTHING]
    known.sort(key=lambda effect: number(effect) or 0.0)
    shown = dict.fromkeys(text(judgement.claim, effect) for effect in (known[0], known[-1]))
    mean = "" if judgement.mean is None else f", {judgement.mean.label}"
    return " to ".join(shown) + mean


def grid_of(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of `HEADS` as a table in Markdown."""
    frame = pd.DataFrame(lines, columns=HEADS)
    return grid(Table("", frame, len(HEADS), frame))


def links(folder: Path, name: str) -> str:
    """Return links to the results of an experiment: ``[table](fedsdd_table2/table.md)``."""
    there = {text: file for text, file in FILES.items() if (folder / file).is_file()}
    own = name if folder.name == name else f"{name}/{folder.name}"
    linked = ", ".join(f"[{text}]({own}/{file})" for text, file in there.items())
    return linked if folder.name == name else f"{folder.name}: {linked}"


def picture(scores: Tidy, at: Path, folder: Path) -> str:
    """Draw scores, and return what shows it.

    If there are any, it shows differences from a baseline, or else published numbers as well.
    """
    drawn = [*figures_of(scores)]
    shown = next(one for one in ("differences", "published", "accuracy") if one in drawn)
    save_figure(OF_SCORES[shown](scores), at / f"{shown}.png")
    return f"![Measured]({(at / shown).relative_to(folder)}.png)"


def main(folder: Path, workflow: Path) -> None:
    """Write the page, and the texts of all folders of results."""
    claims = [one for one in load_claims([], workflow / "papers") if one.claim.primary]
    primary = {(one.claim.experiment, one.claim.id): one for one in claims}
    kept = sorted(path.parent for path in folder.rglob("scores.parquet"))
    name_of = {at: at.relative_to(folder).parts[0] for at in kept}
    read = (pd.read_parquet(at / "scores.parquet", columns=[SEED]) for at in kept)
    seeds = {int(seed) for frame in read for seed in frame[SEED].unique()}
    names = {*name_of.values(), *(name for name, _ in primary)}
    catalogue = resolve_all(Config.model_construct(targets=[]), workflow, names, sorted(seeds))
    judged, parts = {at: measure(catalogue, at, name_of[at]) for at in kept}, [ABOUT]
    found = {(at, one.claim.id): one for at in kept for one in judged[at].judgements}

    def of(name: str, claim: str) -> dict[Path, Judgement]:
        return {at: one for (at, own), one in found.items() if (name_of[at], own) == (name, claim)}

    for paper in (papers := load_papers(workflow / "papers")):
        keys = [key for key, one in primary.items() if one.paper == paper]
        # What verdicts are about is one family, and what was measured elsewhere another one.
        places: tuple[list[tuple[Path, str]], ...] = ([], [])
        for name, claim in keys:
            there = of(name, claim)
            ordered = [*in_regime(there), *in_regime(there, outside=True)]
            for at in ordered:
                places[at is not ordered[0]].append((at, claim))
        for family in places:
            own = Family(claims=[claim for _, claim in family], primary=len(keys))
            found |= zip(family, correct([found[at] for at in family], [own]), strict=True)
    for at, (scores, judgements) in judged.items():
        if every := [found[at, one.claim.id] for one in judgements]:
            write_tables(at / "claims.md", claim_tables(every, scores.header))
    for paper, about in papers.items():
        stated = {key: one for key, one in primary.items() if one.paper == paper}
        lines = [line(catalogue, one, of(*key)) for key, one in stated.items()]
        parts += [f"## {about.title}", grid_of(lines)]
        parts += [about.remark.strip()] if about.remark else []
        shown = [at for name, _ in stated for at in kept if name_of[at] == name]
        for old in (png for at in shown for png in at.glob("*.png")):
            old.unlink()
        inside = (at for key in stated for at in in_regime(of(*key)))
        parts += [picture(judged[at].scores, at, folder) for at in islice(chain(inside, shown), 1)]
    rest = [at for at in kept if name_of[at] not in {name for name, _ in primary}]
    also = [f"- {name_of[at]}: {links(at, name_of[at])}" for at in rest]
    parts += ["## Also measured", "\n".join(also), LEGEND]
    (folder / "README.md").write_text("\n\n".join(["# Results", *parts]) + "\n", "utf-8")


if __name__ == "__main__":
    main(WORKFLOW / "docs/results", WORKFLOW)
