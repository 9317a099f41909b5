"""Make `workflow/docs/results` from committed scores: README.md, and each table and its claims.

    uv run python workflow/scripts/results_page.py

A folder EXPERIMENT has `scores.csv` (of a run: `results/tables/EXPERIMENT/study.scores.csv`) and, for
claims about bytes, seconds or forgetting, `KIND.runs.parquet` (`results/KIND/EXPERIMENT/study...`).
The first ten seeds count. Pictures are copied by hand from `results/figures/EXPERIMENT`.

To add scores of another machine, or of more seeds, join the files, one row for each key:

    files = ["workflow/docs/results/EXPERIMENT/scores.csv", "more.scores.csv"]
    scores = pd.concat([pd.read_csv(file, dtype=str, keep_default_na=False) for file in files])
    key = scores.columns.difference(["value", "settings", "source", "machine", "seconds"])
    scores.drop_duplicates([*key]).to_csv(files[0], index=False)

Parquet likewise, by axes and seed. Scores of other settings than the experiment's are refused.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.targets import describe
from fedstage.results.claims import report
from fedstage.results.claims.judging import Judged, correct, judge_each
from fedstage.results.claims.library import MEASURES, Sourced, distinct_cells, load_claims
from fedstage.results.claims.verdicts import NOT_MEASURED, Judgement, judge
from fedstage.results.published.rows import load_papers
from fedstage.results.published.scale import PAPER
from fedstage.results.tables import markdown
from fedstage.results.tables.documents import TableFiles
from fedstage.results.tables.labels import NOTHING
from fedstage.results.tables.runs import read_runs
from fedstage.results.tables.score_file import key_of, read_score_file
from fedstage.settings.claims import ClaimsToJudge, Family
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.stages.tables import tables
from fedstage.storage.files import save_json

WORKFLOW = Path(__file__).parents[1]
SEEDS = 10
HEADS = ["Claim", "Published", "The paper's own tests", "Measured [95 %]", "Verdict"]
FILES = {"table": "table.md", "claims": "claims.md", "scores": "scores.csv"}
ABOUT = """\
The papers' primary claims as published, and as measured by small studies on two cores. The scale \
`study` has smaller images and networks than the papers, and more seeds. \
`workflow/scripts/results_page.py` makes this page from the files of scores next to it, the \
[claims](../experiments.md#claims) that were declared beforehand, and the papers' printed numbers."""
LEGEND = f"""\
- **Published**: the mean effect over all cells of the claim that the paper prints, or what its \
text states.
- **The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds; Holm's \
correction is over the comparisons of the claim. Two cells that stand for one printed number are \
one test.
- **Measured**: the mean effect over cells and seeds with its 95 % interval, in the cells that the \
study has, from the first {SEEDS} seeds. A cell is not measured if one of its runs never reaches the \
goal that a claim is about: only the fast runs would count.
- **Verdict**: with Holm's correction over the primary claims of the paper. `practically nil` is \
within the margin of the claim.
- A verdict is about the study. A paper is neither confirmed nor refuted by it."""


def measure(catalogue: Catalogue, folder: Path) -> Judged:
    """Write an experiment's table, and judge each claim on it, without correction."""
    name, scores = folder.name, read_score_file(folder / "scores.csv")
    scale = "study" if (name, "study") in catalogue.runs else "default"
    described, there = describe(catalogue, name, scale, "runs"), scores.runs()
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
    about = any(one.claim.experiment == name for one in catalogue.claims)
    raw = describe(catalogue, name, scale, "claims") if about else {"claims": []}
    claims = validate(ClaimsToJudge, raw, name)
    claims.claims[:] = [claim for claim in claims.claims if claim.metric not in absent]
    return judge_each(claims, experiment, frame, measures)


def section(
    catalogue: Catalogue, claims: list[Sourced], found: dict[str, Judgement], folder: Path
) -> list[str]:
    """Return the table of a paper's primary claims, a picture, and what else was measured."""
    lines = [_line(catalogue, one, found.get(one.claim.id), folder) for one in claims]
    names = dict.fromkeys(one.claim.experiment for one in claims)
    pictures = [f"{name}/{file}" for name in names for file in ("published.png", "accuracy.png")]
    there = [f"![Measured]({file})" for file in pictures if (folder / file).is_file()]
    return [markdown.grid(HEADS, lines, len(HEADS)), *there[:1]]


def _line(catalogue: Catalogue, one: Sourced, found: Judgement | None, folder: Path) -> list[str]:
    """Return a primary claim as published, and as measured if it was."""
    name, claim = one.claim.experiment, one.claim
    table = catalogue.published.get((name, PAPER))
    same_metric = claim.metric in (None, catalogue.experiments[name].table.metric)
    points = [run.axes for run in catalogue.runs[name, PAPER]]
    printed = judge(claim, distinct_cells(points, table.numbers if table and same_metric else None))
    measured, verdict = NOTHING, NOT_MEASURED
    if found is not None and found.measured:
        text = report.measured_text(claim, found.effects[0])
        measured = f"{_of_cells(text, found)}; {report.seeds_text(found.seeds)}"
        verdict = report.verdict_text(found)
    bound = "" if claim.than is not None else f":{report.bound_text(claim)}"
    return [
        f"{claim.text} ({claim.place}{bound}) {_links(folder / name)}".strip(),
        _of_cells(report.published_text(claim, printed.effects[0]), printed),
        report.own_tests(printed),
        measured,
        verdict,
    ]


def _of_cells(text: str, judgement: Judgement) -> str:
    cells = len(judgement.effects[0].pairs)
    return f"{text}, mean of {cells}" if cells > 1 and text != NOTHING else text


def _links(folder: Path) -> str:
    """Return links to the results of an experiment: ``[table](fedsdd_table2/table.md)``."""
    there = {text: file for text, file in FILES.items() if (folder / file).is_file()}
    return ", ".join(f"[{text}]({folder.name}/{file})" for text, file in there.items())


def main(folder: Path, workflow: Path) -> None:
    """Write the page, and the texts of all folders of results."""
    claims = load_claims([], workflow / "papers")
    kept = sorted(path.parent for path in folder.glob("*/scores.csv"))
    seeds = {int(row["seed"]) for at in kept for row in read_score_file(at / "scores.csv").rows}
    names = {at.name for at in kept} | {one.claim.experiment for one in claims if one.claim.primary}
    catalogue = resolve_all(Config.model_construct(targets=[]), workflow, names, sorted(seeds))
    judged, parts = {at.name: measure(catalogue, at) for at in kept}, [ABOUT]
    for paper, about in load_papers(workflow / "papers").items():
        primary = [one for one in claims if one.paper == paper and one.claim.primary]
        ids = {(one.claim.experiment, one.claim.id) for one in primary}
        found = [j for name in judged for j in judged[name].judgements if (name, j.claim.id) in ids]
        family = Family(claims=[j.claim.id for j in found], primary=len(primary))
        corrected = {j.claim.id: j for j in correct(found, [family])}
        for name, of in judged.items():
            every = [
                corrected[j.claim.id] if (name, j.claim.id) in ids else j for j in of.judgements
            ]
            judged[name] = replace(of, judgements=every)
        if primary:
            parts += [
                markdown.heading(about.title),
                *section(catalogue, primary, corrected, folder),
            ]
            parts += [about.remark.strip()] if about.remark else []
    for name, of in judged.items():
        if of.judgements:
            title = f"{of.experiment.title}: claims"
            text = report.render_report(of.judgements, title, of.source, of.experiment.notes)
            (folder / name / "claims.md").write_text(text, encoding="utf-8")
    parts += [markdown.heading("How to read it"), LEGEND]
    (folder / "README.md").write_text(markdown.page("Results", parts), encoding="utf-8")


if __name__ == "__main__":
    main(WORKFLOW / "docs/results", WORKFLOW)
