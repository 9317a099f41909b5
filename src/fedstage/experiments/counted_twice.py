"""Clients whose samples count twice: in the drawing of participants, and in their weights."""

from collections.abc import Iterator, Mapping, Sequence

from fedstage.plan.runs import Run
from fedstage.settings.exchange import weights_travel
from fedstage.settings.recipes import Recipe


def counted_twice(runs: Mapping[tuple[str, str], Sequence[Run]]) -> Iterator[str]:
    """Yield a line for each experiment and scale whose averages weigh clients by samples twice.

    If participants are drawn in proportion to their samples, the plain mean is the average over all
    samples (Fed-ET, Eq. 12); if they are drawn uniformly, the weighted mean is. No paper combines
    both weightings, but doing so is not an error.

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
    """Whether participants are drawn by samples and weighted by samples in an average."""
    averages = weights_travel(recipe) and recipe.aggregation.rule.name == "average"
    by_samples = (recipe.participation, recipe.aggregation.weights) == ("by_samples", "samples")
    return averages and by_samples
