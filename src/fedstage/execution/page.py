"""``fedstage page``: the primary claims of all papers, judged from files of scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from fedstage.execution.lasting import seeds_of, with_scores
from fedstage.execution.measures import absent_measures, load_measures
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.descriptions import claims_to_judge
from fedstage.experiments.targets import describe
from fedstage.results.claims.families import correct
from fedstage.results.claims.gate import without_regime
from fedstage.results.claims.judging import judge_each, regime_fault
from fedstage.results.claims.library import Sourced, distinct_cells, load_claims
from fedstage.results.claims.overview import Finding, Section, render_overview
from fedstage.results.claims.verdicts import Judgement, judge
from fedstage.results.published.rows import load_papers
from fedstage.results.published.scale import PAPER
from fedstage.results.tables.runs import read_runs
from fedstage.results.tables.score_file import read_score_file
from fedstage.settings.claims import ClaimsToJudge, Family
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.files import save_json, save_text
from fedstage.storage.tables import frame_of
from fedstage.storage.yaml_files import load_yaml

#: The file of an experiment's scores, in the folder of its name.
SCORES = "scores.csv"
_LINKS = {"table": "table.md", "claims": "claims.md", "scores": SCORES}
_PICTURES = ("published.png", "accuracy.png")


@dataclass(frozen=True)
class _Measured:
    """The uncorrected judgements on an experiment's primary claims, by id, and its gate."""

    judgements: Mapping[str, Judgement]
    regime: str | None = None


def page(folder: Path, scale: str, config: Path, workflow: Path) -> str:
    """Write the page of a folder of results, ``README.md`` in it; return what was done.

    The page has a section for each paper with primary claims: the printed numbers, and the scores
    in ``EXPERIMENT/scores.csv`` below the folder at this scale. Claims about bytes, seconds or
    forgetting need ``EXPERIMENT/*.runs.parquet``, too. Holm's correction is over all primary claims
    of a paper, on any experiment.

    Raises
    ------
    FedstageError
        If scores belong to no run of their experiment at this scale, or to other settings.
    """
    checked = validate(Config, load_yaml(config), str(config))
    checked = checked.model_copy(update={"targets": []})
    claims = load_claims([], workflow / "papers")
    primary = [one for one in claims if one.claim.primary]
    names = list(dict.fromkeys(one.claim.experiment for one in primary))
    catalogue = resolve_all(checked, workflow, names)
    measured = {
        name: _measure(checked, workflow, folder / name, scale)
        for name in names
        if (folder / name / SCORES).is_file()
    }
    papers = load_papers(workflow / "papers")
    sections = [
        Section(
            papers[paper].title,
            *_of_paper(list(own), catalogue, measured, folder, scale),
            _others(folder, paper, claims),
            papers[paper].remark,
        )
        for paper, own in groupby(primary, lambda one: str(one.paper))
    ]
    save_text(folder / "README.md", render_overview(sections, scale))
    return f"{folder / 'README.md'}: {len(sections)} papers, {len(measured)} experiments measured"


def _of_paper(
    claims: list[Sourced],
    catalogue: Catalogue,
    measured: Mapping[str, _Measured],
    folder: Path,
    scale: str,
) -> tuple[list[Finding], str | None]:
    """Return the findings on a paper's primary claims, and the place of a picture."""
    judged = _corrected(claims, measured)
    findings = [
        Finding(
            _published(one, catalogue),
            judged.get(one.claim.id),
            _waiting(one, catalogue, scale),
            _links(folder, one.claim.experiment),
            measured[one.claim.experiment].regime if one.claim.experiment in measured else None,
        )
        for one in claims
    ]
    names = dict.fromkeys(one.claim.experiment for one in claims)
    pictures = (f"{name}/{picture}" for name in names for picture in _PICTURES)
    return findings, next((path for path in pictures if (folder / path).is_file()), None)


def _others(folder: Path, paper: str, claims: Sequence[Sourced]) -> list[str]:
    """Return links to results of a paper's experiments that no primary claim is about."""
    experiments = dict.fromkeys(one.claim.experiment for one in claims if one.paper == paper)
    primary = {one.claim.experiment for one in claims if one.claim.primary}
    kept = [name for name in experiments if (folder / name / SCORES).is_file()]
    return [f"{name}: {_links(folder, name)}" for name in kept if name not in primary]


def _waiting(one: Sourced, catalogue: Catalogue, scale: str) -> str:
    """Write what an unmeasured claim waits for: a scale, or seeds."""
    if (one.claim.experiment, scale) not in catalogue.runs:
        return f"; {one.claim.experiment} has no scale {scale}"
    looks = one.file.looks
    return f"; first look at {looks[0]} seeds" if looks else ""


def _corrected(claims: list[Sourced], measured: Mapping[str, _Measured]) -> dict[str, Judgement]:
    """Return the judgements on a paper's primary claims, corrected for one another."""
    about = {one.claim.id: measured.get(one.claim.experiment, _Measured({})) for one in claims}
    found = [of.judgements[name] for name, of in about.items() if name in of.judgements]
    family = Family(claims=list(about), primary=len(claims), exploratory=0)
    return {
        one.claim.id: one if about[one.claim.id].regime is None else without_regime(one)
        for one in correct(found, [family])
    }


def _published(one: Sourced, catalogue: Catalogue) -> Judgement:
    """Return the judgement on a claim from the numbers that its paper prints."""
    name, claim = one.claim.experiment, one.claim
    table = catalogue.published.get((name, PAPER))
    same_metric = claim.metric in (None, catalogue.experiments[name].table.metric)
    points = [run.axes for run in catalogue.runs[name, PAPER]]
    cells = distinct_cells(points, table.numbers if table and same_metric else None)
    printed = claims_to_judge(catalogue, name, PAPER)["printed"]
    return judge(claim, cells, printed=claim.id in printed)


def _measure(config: Config, workflow: Path, folder: Path, scale: str) -> _Measured:
    """Judge the primary claims on an experiment by the scores in its folder."""
    scores = read_score_file(folder / SCORES)
    catalogue = resolve_all(config, workflow, [folder.name], seeds_of(scores))
    description = describe(catalogue, folder.name, scale, "runs")
    description["runs"] = with_scores(description, scores)
    with TemporaryDirectory() as between:
        save_json(Path(between, "runs.json"), description)
        experiment, frame = read_runs(Path(between, "runs.json"), folder / SCORES)
    raw = describe(catalogue, folder.name, scale, "claims")
    listed = validate(ClaimsToJudge, raw, f"claims on {folder.name}")
    tables = load_measures(sorted(folder.glob("*.runs.parquet")))
    absent = absent_measures({one.metric for one in listed.claims}, tables)
    unknown = set().union(*absent.values())
    wanted = [one for one in listed.claims if one.primary and one.metric not in unknown]
    listed = listed.model_copy(update={"claims": wanted})
    judged = judge_each(listed, experiment, frame, [frame_of(table) for table in tables])
    fault = regime_fault(listed, experiment, frame)
    return _Measured({one.claim.id: one for one in judged}, fault)


def _links(folder: Path, experiment: str) -> str:
    """Return links to the results of an experiment: ``[table](fedsdd_table2/table.md)``."""
    kept = {text: name for text, name in _LINKS.items() if (folder / experiment / name).is_file()}
    return ", ".join(f"[{text}]({experiment}/{name})" for text, name in kept.items())
