"""The claims of all papers and of config.yaml, checked against their experiments."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.published_rows import Point, Row, load_rows, without_seed
from fedstage.results.comparisons import Cell, comparisons, sides
from fedstage.settings.cells import as_text, check_cells, show_point
from fedstage.settings.experiments import Result
from fedstage.settings.merging import Raw
from fedstage.settings.scores import COMMUNICATED, RETAINED, SECONDS, Claim, ClaimList, StatedRows
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

#: The metrics of claims that are columns of results other than the metrics of runs.
MEASURES: dict[Result, Collection[str]] = {
    "communication": COMMUNICATED,
    "round_times": SECONDS,
    "retention": RETAINED,
}


#: The maximum number of primary claims of a paper.
_MOST_PRIMARY = 5


@dataclass(frozen=True)
class Sourced:
    """A claim, and its place for messages."""

    where: str
    claim: Claim
    paper: str | None = None  # the folder of the paper that makes it
    primary: int = 0  # number of primary claims in the same file

    @property
    def place(self) -> str:
        """The file and the claim in it, for messages."""
        return f"{self.where}: {self.claim.id}"


def load_claims(
    own: Iterable[Claim], folder: Path, experiments: Collection[str] | None = None
) -> list[Sourced]:
    """Return the claims of config.yaml and of the folder `papers`, with the ranges they state.

    Parameters
    ----------
    experiments : collection of str, optional
        The experiments whose claims are read; by default all.

    Raises
    ------
    FedstageError
        If a file is not valid, an experiment has two claims with one id, or the rows that a claim
        names for its range are neither a single row nor a lower and an upper end.
    """
    listed, where = list(own), "config.yaml: claims"
    primary = _few(where, sum(claim.primary for claim in listed))
    claims = [_with_statement(Sourced(where, claim, None, primary)) for claim in listed]
    for path in sorted(folder.glob("*/claims.yaml")):
        every = load_yaml(path)
        content = validate(ClaimList, _about(every, experiments), str(path))
        # Also those on experiments that are not read.
        primary = sum(claim.get("primary") is True for claim in every.get("claims", []))
        _few(str(path), primary)
        rows = cache(partial(load_rows, path.parent))
        for claim in content.claims:
            if claim.metric is None and claim.regime is None:
                claim = claim.model_copy(update={"regime": content.regime})
            sourced = Sourced(str(path), claim, path.parent.name, primary)
            claims.append(_with_statement(sourced, rows))
    _check_ids(claims)
    return claims


def _few(where: str, primary: int) -> int:
    if primary > _MOST_PRIMARY:
        raise FedstageError(
            f"{where}: primary: {primary} claims are; at most {_MOST_PRIMARY} may be"
        )
    return primary


def _about(raw: Raw, experiments: Collection[str] | None) -> Raw:
    """Return a file's content without the claims on other experiments."""
    claims = raw.get("claims")
    if experiments is None or not isinstance(claims, list):
        return raw
    wanted = {None, *experiments}
    kept = [
        claim
        for claim in claims
        if not isinstance(claim, dict) or claim.get("experiment") in wanted
    ]
    return {**raw, "claims": kept}


def check_claims(
    claims: Iterable[Sourced], results: Collection[Result], points: Sequence[Point]
) -> None:
    """Check that claims on an experiment name cells that it has, compare some, and can be measured.

    `points` are the axes of each of its runs, of all scales together. Claims about seconds, bytes
    or forgetting need a result that measures it.
    """
    cells = distinct_cells(points)
    for sourced in claims:
        where, claim = sourced.place, sourced.claim
        for named in (claim.where, *sides(claim)):
            check_cells(where, claim.experiment, named, points)
        if not comparisons(claim, cells):
            raise FedstageError(
                f"{where}: compares no cells of {claim.experiment}: both sides must agree on all "
                "axes that neither names"
            )
        for needed, metrics in MEASURES.items():
            if claim.metric in metrics and needed not in results:
                raise FedstageError(
                    f"{where}: metric = {claim.metric!r}: only of experiments with {needed} among "
                    f"their results, unlike {claim.experiment}"
                )


def _with_statement(sourced: Sourced, rows: Callable[[], Sequence[Row]] | None = None) -> Sourced:
    """Return a claim with the ends of its stated range, instead of the rows that contain them.

    `rows` returns the numbers of the claim's paper.
    """
    stated = sourced.claim.stated
    if not isinstance(stated, StatedRows):
        return sourced
    if rows is None:
        raise FedstageError(
            f"{sourced.place}: stated.table = {stated.table!r}: only in a file of a paper's "
            "claims; here give the ends of the range, [low, high]"
        )
    keys = {key: as_text(value) for key, value in stated.where.items()}
    matching = [
        row for row in rows() if row.table == stated.table and keys.items() <= row.keys.items()
    ]
    values = [row.value for row in matching]
    ends = [row.keys.get("bound") for row in matching]
    if ends not in ([None], ["low", "high"]):
        raise FedstageError(
            f"{sourced.place}: stated: {len(matching)} rows of {stated.table} have "
            f"{show_point(stated.where)}; name one, or two of bound = low and high"
        )
    return replace(
        sourced, claim=sourced.claim.model_copy(update={"stated": (values[0], values[-1])})
    )


def _check_ids(claims: Iterable[Sourced]) -> None:
    seen: dict[tuple[str, str], Sourced] = {}
    for sourced in claims:
        key = (sourced.claim.experiment, sourced.claim.id)
        other = seen.setdefault(key, sourced)
        if other is not sourced:
            places = " and ".join(dict.fromkeys((other.where, sourced.where)))
            raise FedstageError(
                f"{sourced.where}: id = {sourced.claim.id!r}: {key[0]} has two claims of this id "
                f"({places}); rename one"
            )


def distinct_cells(
    points: Sequence[Point], numbers: Sequence[Mapping[str, Any] | None] | None = None
) -> list[Cell]:
    """Return the cells of a grid's points, one for all seeds, each with the paper's number."""
    found: dict[str, Cell] = {}
    for point, number in zip(points, numbers or [None] * len(points), strict=True):
        axes = without_seed(point)
        known = number or {}
        value, std, seeds = (known.get(name) for name in ("value", "std", "seeds"))
        found.setdefault(str(axes), Cell(axes, {}, value, std, seeds))
    return list(found.values())
