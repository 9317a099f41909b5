"""The guarantee of a run: epsilon of its releases, from its settings and its participants."""

from collections import Counter
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.models.size import FLOAT, state_size
from fedstage.results.accounting import fixed_size_epsilon, poisson_epsilon, skellam_epsilon
from fedstage.results.runs_file import ExperimentRun
from fedstage.settings.distributed_noise import longest, variance
from fedstage.settings.exchange import secure_of
from fedstage.settings.groups import client_groups, client_models, group_participants
from fedstage.settings.privacy import (
    ClientPrivacy,
    ExamplePrivacy,
    delta_of,
    example_privacy,
    private_steps,
    sampling_rate,
)
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table


def guarantee(run: ExperimentRun) -> dict[str, float]:
    """Return epsilon and `delta` of a run after its last round; nothing without privacy.

    The keys are `epsilon` for clients, and `example_epsilon` for samples. A run that starts from
    another one has no guarantee.
    """
    part = run.candidates[run.which()].parts[-1]
    recipe = part.recipe
    if not isinstance(recipe, Recipe) or recipe.privacy is None:
        return {}
    client, example = recipe.privacy.client, recipe.privacy.example
    if client is not None and client.noise_by == "clients":
        tables = run.candidates[run.which()].participants
        epsilon = masked_epsilon(recipe, client, _numbers(recipe, run.info), _rounds(tables))
        return {"epsilon": epsilon, "delta": delta_of(client, recipe.clients)}
    if client is not None:
        epsilon = client_epsilon(recipe, client, part.length.rounds)
        return {"epsilon": epsilon, "delta": delta_of(client, recipe.clients)}
    assert example is not None, "checked by Privacy"
    samples = _samples(run.partition)
    delta = _delta_of_samples(example, samples)
    rounds = _rounds(run.candidates[run.which()].participants)
    return {"example_epsilon": example_epsilon(recipe, samples, rounds, delta), "delta": delta}


def client_epsilon(recipe: Recipe, how: ClientPrivacy, rounds: int) -> float:
    """Return epsilon of all global models of `rounds` rounds, for a client.

    Each round releases the sums of all groups. A client is in one group, so it changes all sums
    together by no more than a single one.
    """
    taking_part, clients = recipe.participants, recipe.clients
    delta = delta_of(how, clients)
    if how.clip is None:
        return poisson_epsilon(0.0, 1.0, rounds, delta)
    if recipe.participation == "poisson" or taking_part == clients:
        return poisson_epsilon(how.noise, taking_part / clients, rounds, delta)
    return fixed_size_epsilon(how.noise, taking_part, clients, rounds, delta)


def masked_epsilon(
    recipe: Recipe, how: ClientPrivacy, numbers: int, rounds: dict[int, int]
) -> float:
    """Return epsilon of all sums of masked changes, for a client whose change is 0 otherwise.

    The server sees which clients take part, so the random selection of clients hides nothing. Only
    the noise of `threshold` participants counts, since the others may drop out.

    Parameters
    ----------
    numbers : int
        The largest number of parameters of a model that clients train.
    rounds : dict of int to int
        The number of rounds in which each client took part.
    """
    secure, steps = secure_of(recipe), max(rounds.values(), default=0)
    delta = delta_of(how, recipe.clients)
    if how.clip is None:
        return skellam_epsilon(0.0, 1.0, numbers, steps, delta)
    most = max(len(group_participants(recipe, group)) for group in client_groups(recipe))
    left = secure.threshold * variance(how, secure, most)
    return skellam_epsilon(left, longest(how, secure, numbers), numbers, steps, delta)


def _numbers(recipe: Recipe, info: str | None) -> int:
    """Return the largest number of parameters, buffers included, of a model that clients train."""
    assert info is not None, "of a federated run"
    known = load_json(Path(info))
    shape, classes = tuple(known["shape"]), int(known["classes"])
    sizes = {model.name: state_size(model, shape, classes) for model in client_models(recipe)}
    if unknown := [name for name, size in sizes.items() if not size]:
        raise FedstageError(
            f"model = {unknown[0]}: its number of parameters must be in models/size.py with "
            "privacy.client.noise_by = clients, whose epsilon depends on it"
        )
    return max(sizes.values()) // FLOAT


def example_epsilon(
    recipe: Recipe, samples: dict[int, int], rounds: dict[int, int], delta: float
) -> float:
    """Return epsilon of all that clients send, for a sample: the largest of the clients.

    A sample belongs to one client, and only the updates of this client depend on it directly. Each
    step of the client draws the sample at random; all steps count in the rounds in which the client
    took part.

    Parameters
    ----------
    samples, rounds : dict of int to int
        The number of training samples of each client, and of its rounds.
    """
    how = example_privacy(recipe)
    assert how is not None, "checked by the caller"
    noise = 0.0 if how.clip is None else how.noise
    steps: dict[float, int] = {}  # the most of all clients with a rate
    for client, times in rounds.items():
        rate = sampling_rate(recipe.client, samples[client])
        own = times * private_steps(recipe.client, samples[client])
        steps[rate] = max(own, steps.get(rate, 0))
    found = (poisson_epsilon(noise, rate, number, delta) for rate, number in steps.items())
    return max(found, default=0.0)


def _samples(histogram: str) -> dict[int, int]:
    """Return the number of training samples of each client, from the histogram of labels."""
    found: Counter[int] = Counter()
    for row in load_table(Path(histogram), ["client", "role", "samples"]).to_pylist():
        if row["role"] == "train":
            found[row["client"]] += row["samples"]
    return dict(found)


def _rounds(participants: list[str]) -> dict[int, int]:
    """Return the number of rounds in which each client took part, from tables of participants."""
    tables = (load_table(Path(path), ["client"])["client"].to_pylist() for path in participants)
    return dict(Counter(client for clients in tables for client in clients if client is not None))


def _delta_of_samples(how: ExamplePrivacy, samples: dict[int, int]) -> float:
    most = max(samples.values())
    delta = delta_of(how, most)
    if delta * most >= 1:
        raise FedstageError(
            f"privacy.example.delta = {delta}: must be less than 1 / {most}, the samples of the "
            "largest client, or a guarantee may publish one of them"
        )
    return delta
