"""Clients that count twice by their samples: drawn by them, and weighted by them."""

from collections.abc import Iterator, Mapping, Sequence

from fedstage.plan.runs import Run
from fedstage.settings.exchange import weights_travel
from fedstage.settings.recipes import Recipe


def counted_twice(runs: Mapping[tuple[str, str], Sequence[Run]]) -> Iterator[str]:
    """Yield a line for each experiment and scale whose averages weigh clients by samples twice.

    Of participants that are drawn in proportion to their samples the plain mean is the average over
    all samples (Fed-ET, Eq. 12), and of participants that are drawn uniformly the weighted one. No
    paper does both, but that is no fault.

    Parameters
    ----------
    runs : mapping
        The runs of each experiment and scale.
    """
    for (name, scale), some in runs.items():
        methods = {
            str(run.axes["method"]): None
            for run in some
            for part in run.trained()
            if isinstance(part.recipe, Recipe) and weighs_twice(part.recipe)
        }
        if methods:
            yield (
                f"{name}/{scale}: participation = by_samples draws clients by their samples, and "
                f"aggregation.weights = samples weighs them so once more ({', '.join(methods)}); "
                "use aggregation: {weights: uniform}"
            )


def weighs_twice(recipe: Recipe) -> bool:
    """Whether an average weighs participants by samples that are drawn by samples."""
    averages = weights_travel(recipe) and recipe.aggregation.rule.name == "average"
    by_samples = (recipe.participation, recipe.aggregation.weights) == ("by_samples", "samples")
    return averages and by_samples
