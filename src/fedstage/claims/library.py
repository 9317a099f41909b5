"""All claims that there are, checked against the experiments that they are about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedstage.cells import selects
from fedstage.claims.comparisons import Cell, comparisons, sides
from fedstage.claims.settings import Claim, ClaimFile
from fedstage.config import SECONDS, Axis, Cells
from fedstage.errors import FedstageError
from fedstage.experiments import Experiment, load_yaml
from fedstage.validation import validate

Point = Mapping[str, Axis]


@dataclass(frozen=True)
class Sourced:
    """A claim, and where it stands, for messages."""

    where: str
    claim: Claim


def load_claims(own: Iterable[Claim], folder: Path) -> list[Sourced]:
    """Return the claims of config.yaml and of all files in `folder`.

    Raises
    ------
    FedstageError
        If a file is not valid, or an experiment has two claims of one id.
    """
    found = [Sourced("config.yaml: claims", claim) for claim in own]
    for path in sorted(folder.glob("*.yaml")):
        file = validate(ClaimFile, load_yaml(path), str(path))
        found += [Sourced(str(path), claim) for claim in file.claims]
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
    for one in claims:
        if one.claim.experiment in grids:
            _check_claim(one, grids[one.claim.experiment])


def check_metrics(claims: Iterable[Sourced], experiments: Mapping[str, Experiment]) -> None:
    """Check that seconds are claimed of experiments only that measure them.

    Raises
    ------
    FedstageError
        If an experiment's results are without `round_times`.
    """
    for one in claims:
        name, metric = one.claim.experiment, one.claim.metric
        timed = name not in experiments or "round_times" in experiments[name].results
        if metric in SECONDS and not timed:
            raise FedstageError(
                f"{one.where}: {one.claim.id}: metric = {metric!r}: only of experiments with "
                f"round_times among their results, unlike {name}"
            )


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


def _check_claim(one: Sourced, points: Sequence[Point]) -> None:
    where = f"{one.where}: {one.claim.id}"
    for cells in (one.claim.where, *sides(one.claim)):
        _check_cells(where, one.claim.experiment, cells, points)
    every = [_without_seed(point) for point in points]
    unique = list({str(axes): Cell(axes) for axes in every}.values())
    if not comparisons(one.claim, unique):
        raise FedstageError(
            f"{where}: compares no cells of {one.claim.experiment}: both sides must agree on all "
            "axes that neither names"
        )


def _check_cells(where: str, experiment: str, cells: Cells, points: Sequence[Point]) -> None:
    for axis, wanted in cells.items():
        known = dict.fromkeys(str(point[axis]) for point in points if axis in point)
        if not known or axis == "seed":
            axes = ", ".join(dict.fromkeys(key for point in points for key in point))
            raise FedstageError(f"{where}: {axis}: no axis of {experiment}; use one of {axes}")
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if not any(selects({axis: value}, point) for point in points):
                raise FedstageError(
                    f"{where}: {axis} = {value!r}: no cell of {experiment}; "
                    f"use one of {', '.join(known)}"
                )


def _without_seed(point: Point) -> dict[str, Axis]:
    return {axis: value for axis, value in point.items() if axis != "seed"}
