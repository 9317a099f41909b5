"""Make `workflow/docs/results` from committed scores: README.md, and each table and its claims.

    uv run python workflow/scripts/results_page.py

A folder EXPERIMENT has `scores.csv` (a run's `results/tables/EXPERIMENT/study.scores.csv`) and, for
claims about bytes, seconds or forgetting, `KIND.runs.parquet` (of `results/KIND/EXPERIMENT`).
The first ten seeds count. Pictures are copied by hand from `results/figures/EXPERIMENT`.

To add scores of another machine, or of more seeds, join files, with one row for each key:

    files = ["workflow/docs/results/EXPERIMENT/scores.csv", "more.scores.csv"]
    scores = pd.concat([pd.read_csv(file, dtype=str, keep_default_na=False) for file in files])
    key = scores.columns.difference(["value", "settings", "source", "machine", "seconds"])
    scores.drop_duplicates([*key]).to_csv(files[0], index=False)

Parquet likewise, by axes and seed. Scores of other settings than the experiment's are refused.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from fedstage.results.claims.judging import Judged, correct, judge_each
from fedstage.results.claims.verdicts import NOT_MEASURED, Effect, Judgement, judge
from fedstage.results.tables import markdown
from fedstage.results.tables.documents import TableFiles
from fedstage.results.tables.labels import NOTHING
from fedstage.results.tables.runs import read_runs
from fedstage.results.tables.score_file import key_of, read_score_file
from fedstage.stages.tables import tables

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.claims import MEASURES, Sourced, distinct_cells, load_claims
from fedstage.experiments.descriptions import claims_to_judge, describe_runs
from fedstage.experiments.published import PAPER
from fedstage.experiments.published_rows import load_papers
from fedstage.results.claims import report
from fedstage.settings.config_file import Config
from fedstage.settings.scores import Claim, ClaimsToJudge, Family
from fedstage.settings.validation import validate
from fedstage.storage.files import save_json

WORKFLOW = Path(__file__).parents[1]
SEEDS = 10  # at most, the first ones of each experiment
HEADS = ["Claim", "Published", "The paper's own tests", "Measured [95 %]", "Verdict"]
FILES = {"table": "table.md", "claims": "claims.md", "scores": "scores.csv"}
ABOUT = """The papers' primary claims as published, and as measured by small studies on two cores.
The scale `study` has smaller images and networks than the papers, and more seeds.
`workflow/scripts/results_page.py` makes this page from the files of scores next to it, the
[claims](../experiments.md#claims), declared beforehand, and the papers' printed numbers."""
LEGEND = f"""## How to read it

- **Published**: in how many of the paper's comparisons the claim holds, and the effect in its
  printed means, or in its text.
- **The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds, with Holm's
  correction over the claim's comparisons. Cells with the same printed numbers are one test.
- **Measured**: the mean effect over seeds with its 95 % interval, in the cells that the study has,
  from the first {SEEDS} seeds. A cell with a run that never reaches the goal of a claim is not
  measured, because the seeds that reach it are the fast ones.
- Of several comparisons, the smallest and the largest effect are shown, and how many of the
  paper's were measured; of a claim about an average, their mean.
- **Verdict**: as in the linked claims, on every comparison, or on the mean of a claim about an
  average; with Holm's correction over the primary claims of the paper. `practically nil` is within
  the margin of the claim. It is about the study: it neither confirms nor refutes a paper."""


def measure(catalogue: Catalogue, folder: Path) -> Judged:
    """Write an experiment's table, and judge each claim on it, without correction."""
    name, scores = folder.name, read_score_file(folder / "scores.csv")
    scale = "study" if (name, "study") in catalogue.runs else "default"
    described, there = describe_runs(catalogue, name, scale), scores.runs()
    runs = {key_of(run["settings"], scores.axes): run for run in described["runs"]}
    if unknown := there.keys() - runs.keys():
        raise FedstageError(f"{scores.name}: {min(unknown)}: no run of {name}/{scale}")
    seeds = sorted({runs[key]["settings"]["seed"] for key in there})[:SEEDS]
    measured = [run for key, run in runs.items() if key in there]
    described["runs"] = [run for run in measured if run["settings"]["seed"] in seeds]
    with TemporaryDirectory() as made:
        listed, unread = Path(made, "runs.json"), Path(made, "unread")
        save_json(listed, described)
        experiment, frame = read_runs(listed, folder / "scores.csv")
        if "table" in catalogue.experiments[name].results:
            files = TableFiles(unread, unread, folder / "table.md", unread)
            tables(runs=listed, scores=folder / "scores.csv", files=files, latex=unread)
    measures = [pd.read_parquet(path) for path in sorted(folder.glob("*.runs.parquet"))]
    absent = {metric for kind in MEASURES.values() for metric in kind}.difference(*measures)
    claims = validate(ClaimsToJudge, claims_to_judge(catalogue, name), name)
    claims.claims[:] = [claim for claim in claims.claims if claim.metric not in absent]
    return judge_each(claims, experiment, frame, measures)


def line(catalogue: Catalogue, one: Sourced, found: Judgement | None, folder: Path) -> list[str]:
    """Return a primary claim as published, and as measured if it was."""
    name, claim = one.claim.experiment, one.claim
    table, runs = catalogue.published.get((name, PAPER)), catalogue.runs[name, PAPER]
    numbers = table.numbers if table and claim.metric is None else None
    if table and claim.metric:
        numbers = [others.get(claim.metric) for others in table.others]
    printed = judge(claim, distinct_cells([run.axes for run in runs], numbers))
    published, verdict = report.in_published(printed), NOT_MEASURED
    if published != NOTHING:
        published += f": {ends(printed, report.published_text, lambda one: one.published)}"
    measured = NOTHING
    if found is not None and found.measured:
        text = ends(found, report.measured_text, lambda one: one.measured.mean)
        verdict = report.verdict_text(found)
        cells = f" in {found.measured} of {found.total}" if found.total > 1 else ""
        measured = f"{text}{cells}; {report.seeds_text(found.seeds)}"
    bound = "" if claim.than is not None else f":{report.bound_text(claim)}"
    about = f"{claim.text} ({claim.place}{bound}) {links(folder / name)}".strip()
    return [about, published, report.own_tests(printed), measured, verdict]


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


def links(folder: Path) -> str:
    """Return links to the results of an experiment: ``[table](fedsdd_table2/table.md)``."""
    there = {text: file for text, file in FILES.items() if (folder / file).is_file()}
    return ", ".join(f"[{text}]({folder.name}/{file})" for text, file in there.items())


def main(folder: Path, workflow: Path) -> None:
    """Write the page, and the texts of all folders of results."""
    claims = [one for one in load_claims([], workflow / "papers") if one.claim.primary]
    primary = {(one.claim.experiment, one.claim.id): one for one in claims}
    kept = sorted(path.parent for path in folder.glob("*/scores.csv"))
    seeds = {int(row["seed"]) for at in kept for row in read_score_file(at / "scores.csv").rows}
    names = {*(at.name for at in kept), *(name for name, _ in primary)}
    catalogue = resolve_all(Config.model_construct(targets=[]), workflow, names, sorted(seeds))
    judged, parts = {at.name: measure(catalogue, at) for at in kept}, [ABOUT]
    found = {(name, one.claim.id): one for name in judged for one in judged[name].judgements}
    for paper in (papers := load_papers(workflow / "papers")):
        keys = [key for key, one in primary.items() if one.paper == paper]
        there = [key for key in keys if key in found]
        family = Family(claims=[claim for _, claim in there], primary=len(keys))
        found |= zip(there, correct([found[key] for key in there], [family]), strict=True)
    for name, of in judged.items():
        if every := [found[name, one.claim.id] for one in of.judgements]:
            title, notes = f"{of.experiment.title}: claims", of.experiment.notes
            text = report.render_report(every, title, of.source, notes)
            (folder / name / "claims.md").write_text(text, "utf-8")
    for paper, about in papers.items():
        own = {key: one for key, one in primary.items() if one.paper == paper}
        lines = [line(catalogue, one, found.get(key), folder) for key, one in own.items()]
        parts += [markdown.heading(about.title), markdown.grid(HEADS, lines, len(HEADS))]
        parts += [about.remark.strip()] if about.remark else []
        files = [f"{name}/{file}" for name, _ in own for file in ("published.png", "accuracy.png")]
        parts += [f"![Measured]({file})" for file in files if (folder / file).is_file()][:1]
    others = [f"{n}: {links(folder / n)}" for n in judged if n not in {m for m, _ in primary}]
    parts += [markdown.heading("Also measured"), markdown.items(others), LEGEND]
    (folder / "README.md").write_text(markdown.page("Results", parts), "utf-8")


if __name__ == "__main__":
    main(WORKFLOW / "docs/results", WORKFLOW)
