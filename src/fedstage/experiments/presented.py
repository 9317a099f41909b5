"""Checks of whether the results of an experiment can present its runs."""

from collections.abc import Iterable

from fedstage.errors import FedstageError
from fedstage.experiments.evaluated import why_untrained
from fedstage.plan.runs import Run
from fedstage.settings.experiments import OF_ANY_RUN, Result
from fedstage.settings.recipes import Recipe
from fedstage.settings.scores import Axis


def check_results(where: str, results: Iterable[Result], runs: Iterable[Run]) -> None:
    """Refuse runs without rounds, or without a main model, for results that need them."""
    about_rounds = [result for result in results if result not in OF_ANY_RUN]
    for run in runs if about_rounds else ():
        method = f"method {run.axes['method']}"
        if not isinstance(run.recipe, Recipe):
            raise FedstageError(
                f"{where}: results = {about_rounds[0]!r}: {method} has training "
                f"= {run.length.training!r}: must be 'federated' for this result"
            )
        of_main = [result for result in about_rounds if result in ("retention", "clients")]
        if of_main and (reason := why_untrained(run.recipe)):
            raise FedstageError(
                f"{where}: results = {of_main[0]!r}: main model of {method}: {reason}"
            )


def check_labels(where: str, runs: Iterable[Run]) -> None:
    """Refuse methods that tables and figures would show by the same name."""
    first: dict[str, Axis] = {}
    for run in runs:
        method = run.axes["method"]
        label = run.style.label or str(method)
        other = first.setdefault(label, method)
        if other != method:
            raise FedstageError(
                f"{where}: methods.{method}.label = {label!r}: is what {other} is called as well; "
                "one method per label is allowed"
            )
