"""Runs that do something other than their settings suggest, which is no error."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from fedstage.plan.runs import Run
from fedstage.settings.exchange import students, weights_travel
from fedstage.settings.groups import client_groups, group_participants
from fedstage.settings.recipes import Recipe


def doubtful(runs: Mapping[tuple[str, str], Sequence[Run]]) -> Iterator[str]:
    """Yield a line for each experiment, scale and doubt, with the methods that it concerns.

    Parameters
    ----------
    runs : mapping
        The runs of each experiment and scale.
    """
    for (name, scale), some in runs.items():
        parts = [(run, part.recipe) for run in some for part in run.trained()]
        for doubt, text in _DOUBTS.items():
            methods = {
                str(run.axes["method"]): None
                for run, recipe in parts
                if isinstance(recipe, Recipe) and doubt(recipe)
            }
            if methods:
                yield f"{name}/{scale}: {text.format(', '.join(methods))}"


def weighs_twice(recipe: Recipe) -> bool:
    """Whether participants are drawn by samples and weighted by samples in an average.

    If participants are drawn in proportion to their samples, the plain mean is the average over all
    samples (Fed-ET, Eq. 12); if they are drawn uniformly, the weighted mean is. No paper combines
    both weightings.
    """
    averages = weights_travel(recipe) and recipe.aggregation.rule.name == "average"
    by_samples = (recipe.participation, recipe.aggregation.weights) == ("by_samples", "samples")
    return averages and by_samples


def teaches_itself(recipe: Recipe) -> bool:
    """Whether the ensemble's only member is the model from which its student starts."""
    trainer, ensemble, how = recipe.global_trainer, recipe.ensemble, recipe.aggregation
    if trainer is None or ensemble is None or trainer.starts_from != "aggregated":
        return False
    if recipe.global_models > 1 or not set(students(recipe)) & set(client_groups(recipe)):
        return False
    if ensemble.name == "aggregated":
        return ensemble.checkpoints == 1
    plain = how.rule.name == how.server_optimizer.name == "average" and how.learning_rate == 1
    return plain and recipe.participants == 1 and recipe.participation != "poisson"


def median_is_mean(recipe: Recipe) -> bool:
    """Whether a group has a median of at most two models."""
    sizes = (len(group_participants(recipe, group)) for group in client_groups(recipe))
    return recipe.aggregation.rule.name == "median" and min(sizes) < 3


#: Lines on runs, where {} are the methods.
_DOUBTS: Mapping[Callable[[Recipe], bool], str] = {
    weighs_twice: "participation = by_samples draws clients by their samples, and "
    "aggregation.weights = samples weighs them so once more ({}); use aggregation: "
    "{{weights: uniform}}",
    teaches_itself: "the only teacher of a student is the model from which it starts ({}); use "
    "more participants, global_models or checkpoints, or global.starts_from = previous",
    median_is_mean: "aggregation.rule = median: of at most two models it is their mean ({}); use "
    "at least 3 participants for each global model",
}
