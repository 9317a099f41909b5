"""The gate of a scale: whether its regime can decide claims at all."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from statistics import fmean

from fedstage.results.claims.comparisons import Cell, Show, comparisons, label_pair
from fedstage.results.claims.effects import UNDECIDED, Effect, by_seed
from fedstage.results.claims.verdicts import Judgement
from fedstage.settings.claims import Gate

#: The verdict on all measured claims if the gate does not hold.
NO_REGIME = f"{UNDECIDED} (regime)"
NOTHING = "**The regime decides nothing**"


def fault_of(gate: Gate, experiment: str, cells: Sequence[Cell], show: Show = dict) -> str | None:
    """Return a sentence about the comparison of a gate that fails most clearly, None if all hold.

    A comparison of cells without a common seed does not hold.
    """
    claim = gate.as_claim(experiment)
    pairs = comparisons(claim, cells)
    means = [fmean(by_seed(claim, [pair]) or [nan]) for pair in pairs]
    if not pairs:
        return f"{NOTHING}: its gate has no cells here."
    mean, pair = min(zip(means, pairs, strict=True), key=lambda one: (not isnan(one[0]), one[0]))
    if mean > 0:
        return None
    what = "is not measured" if isnan(mean) else f"is {mean:+.2f}".replace("-", "−")
    return f"{NOTHING}: {label_pair(claim, pair, pairs, show)} {what}, and must be above 0."


def without_regime(judgement: Judgement) -> Judgement:
    """Return a judgement that decides nothing."""
    if not judgement.made:
        return judgement
    return replace(
        judgement,
        verdict=NO_REGIME,
        effects=[_undecided(effect) for effect in judgement.effects],
        cells=[_undecided(effect) for effect in judgement.cells],
        needed=None,
    )


def _undecided(effect: Effect) -> Effect:
    return replace(effect, verdict=NO_REGIME) if effect.measured.n else effect
