"""All claims that there are, checked against the experiments that they are about."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text, check_cells, show_point
from fedstage.results.claims.comparisons import Cell, comparisons, sides
from fedstage.results.published.rows import Row, load_rows
from fedstage.settings.claims import Claim, ClaimFile, StatedRows
from fedstage.settings.experiments import Experiment, Result
from fedstage.settings.scores import COMMUNICATED, SECONDS, Axis
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

Point = Mapping[str, Axis]


@dataclass(frozen=True)
class Sourced:
    """A claim, and where it stands, for messages."""

    where: str
    claim: Claim


def load_claims(own: Iterable[Claim], folder: Path, published: Path) -> list[Sourced]:
    """Return the claims of config.yaml and of all files in `folder`, with what papers state.

    Parameters
    ----------
    published : Path
        The folder with the papers' numbers.

    Raises
    ------
    FedstageError
        If a file is not valid, an experiment has two claims of one id, or a claim's statement is in
        no rows of its paper, or in more than a range has.
    """
    found = [_own(claim) for claim in own]
    for path in sorted(folder.glob("*.yaml")):
        file = validate(ClaimFile, load_yaml(path), str(path))
        rows = cache(partial(load_rows, published / f"{file.paper}.csv"))
        found += [_with_statement(Sourced(str(path), claim), rows) for claim in file.claims]
    _check_ids(found)
    return found


def check_claims(claims: Iterable[Sourced], grids: Mapping[str, Sequence[Point]]) -> None:
    """Check that claims name cells of their experiments, and compare some.

    Claims on experiments that are not there wait for them.

    Parameters
    ----------
    grids : mapping
        The axes of each run of an experiment, of all scales together.

    Raises
    ------
    FedstageError
        If an axis or a value is in no run, or nothing is compared.
    """
    about = [one for one in claims if one.claim.experiment in grids]
    cells = {name: _cells(grids[name]) for name in {one.claim.experiment for one in about}}
    for one in about:
        _check_claim(one, grids[one.claim.experiment], cells[one.claim.experiment])


def check_metrics(claims: Iterable[Sourced], experiments: Mapping[str, Experiment]) -> None:
    """Check that seconds and bytes are claimed of experiments only that measure them.

    Raises
    ------
    FedstageError
        If an experiment's results are without `round_times`, or without `communication`.
    """
    for one in claims:
        name, metric = one.claim.experiment, one.claim.metric
        needed = _measured_by(metric)
        if needed and name in experiments and needed not in experiments[name].results:
            raise FedstageError(
                f"{one.where}: {one.claim.id}: metric = {metric!r}: only of experiments with "
                f"{needed} among their results, unlike {name}"
            )


def _measured_by(metric: str | None) -> Result | None:
    if metric in SECONDS:
        return "round_times"
    return "communication" if metric in COMMUNICATED else None


# --- what papers state ----------------------------------------------------------------------------


def _own(claim: Claim) -> Sourced:
    if isinstance(claim.stated, StatedRows):
        raise FedstageError(
            f"config.yaml: claims: {claim.id}: stated.table = {claim.stated.table!r}: only in a "
            "file of a paper's claims; here give the ends of the range, [low, high]"
        )
    return Sourced("config.yaml: claims", claim)


def _with_statement(one: Sourced, rows: Callable[[], Sequence[Row]]) -> Sourced:
    """Return a claim with the ends of the range that it names rows for."""
    stated = one.claim.stated
    if not isinstance(stated, StatedRows):
        return one
    wanted = {key: as_text(value) for key, value in stated.where.items()}
    found = [
        row for row in rows() if row.table == stated.table and wanted.items() <= row.keys.items()
    ]
    values = [row.value for row in found]
    ends = [row.keys.get("bound") for row in found]
    if ends not in ([None], ["low", "high"]):
        raise FedstageError(
            f"{one.where}: {one.claim.id}: stated: {len(found)} rows of {stated.table} have "
            f"{show_point(stated.where)}; name one, or two of bound = low and high"
        )
    return replace(one, claim=one.claim.model_copy(update={"stated": (values[0], values[-1])}))


# --- ids and cells --------------------------------------------------------------------------------


def _check_ids(claims: Iterable[Sourced]) -> None:
    seen: dict[tuple[str, str], Sourced] = {}
    for one in claims:
        key = (one.claim.experiment, one.claim.id)
        other = seen.setdefault(key, one)
        if other is not one:
            places = " and ".join(dict.fromkeys((other.where, one.where)))
            raise FedstageError(
                f"{one.where}: id = {one.claim.id!r}: {key[0]} has two claims of this id "
                f"({places}); rename one"
            )


def _cells(points: Iterable[Point]) -> list[Cell]:
    """Return the cells of a grid's points: those that differ in their seed are one."""
    every = ({axis: value for axis, value in point.items() if axis != "seed"} for point in points)
    return list({str(axes): Cell(axes) for axes in every}.values())


def _check_claim(one: Sourced, points: Sequence[Point], cells: Sequence[Cell]) -> None:
    where = f"{one.where}: {one.claim.id}"
    for named in (one.claim.where, *sides(one.claim)):
        check_cells(where, one.claim.experiment, named, points)
    if not comparisons(one.claim, cells):
        raise FedstageError(
            f"{where}: compares no cells of {one.claim.experiment}: both sides must agree on all "
            "axes that neither names"
        )
