"""What a run guarantees: epsilon of its releases, from its settings."""

from fedstage.results.accounting import fixed_size_epsilon, poisson_epsilon
from fedstage.results.runs_file import ExperimentRun
from fedstage.settings.privacy import ClientPrivacy, delta_of
from fedstage.settings.recipes import Recipe


def guarantee(run: ExperimentRun) -> dict[str, float]:
    """Return `epsilon` and `delta` of a run after its last round; nothing without privacy.

    A run that starts from another one has none.
    """
    part = run.candidates[run.which()].parts[-1]
    recipe = part.recipe
    if not isinstance(recipe, Recipe) or recipe.privacy is None:
        return {}
    client = recipe.privacy.client
    assert client is not None, "checked by Privacy"
    return {
        "epsilon": client_epsilon(recipe, client, part.length.rounds),
        "delta": delta_of(client, recipe.clients),
    }


def client_epsilon(recipe: Recipe, how: ClientPrivacy, rounds: int) -> float:
    """Return epsilon of all global models of so many rounds, for a client.

    Each round releases the sums of all groups. A client is in one of them, so that together they
    change by as much as one, whatever its group is.
    """
    taking_part, clients = recipe.participants, recipe.clients
    delta = delta_of(how, clients)
    if how.clip is None:
        return poisson_epsilon(0.0, 1.0, rounds, delta)
    if recipe.participation == "poisson" or taking_part == clients:
        return poisson_epsilon(how.noise, taking_part / clients, rounds, delta)
    return fixed_size_epsilon(how.noise, taking_part, clients, rounds, delta)
