"""The measurements of a run: its metrics, and further numbers of the run as a whole."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, ExperimentRuns, last_part
from fedstage.protocol.privacy import delta_of, private_steps, sampling_rate
from fedstage.settings.aggregators import FederatedRounds
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.privacy import ClientPrivacy, ExamplePrivacy
from fedstage.settings.recipes import Recipe
from fedstage.settings.scores import SECONDS, Metric
from fedstage.storage.tables import frame_of, load_table

# --- privacy --------------------------------------------------------------------------------------
#
# A mechanism is (epsilon, delta)-differentially private if for all data D and D' that differ in one
# unit, which is a client or an example, and all sets S of outputs
#
#     P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta
#
# Each step releases the sum, over a sample of all units, of vectors no longer than C, with Gaussian
# noise of deviation z C for every number (Abadi et al. 2016; McMahan et al. 2018).


@cache
def poisson_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Return epsilon if each unit is sampled independently in each step, with probability `rate`.

    Units are added or removed. A rate of 1 means that all units are in every sample. Computed from
    distributions of privacy loss (Koskela et al. 2020).

    Parameters
    ----------
    noise : float
        z, the noise's deviation as a multiple of the largest length; if 0, epsilon is infinite.
    """
    if not noise or not steps:
        return inf if steps else 0.0
    import dp_accounting
    from dp_accounting import pld

    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return float(pld.PLDAccountant().compose(event, steps).get_epsilon(delta))


@cache
def fixed_size_epsilon(noise: float, sampled: int, units: int, steps: int, delta: float) -> float:
    """Return epsilon if each step samples `sampled` of `units` without replacement.

    The number of units is public, so neighbours differ in one replaced unit: a sum changes by up to
    2 C, and noise counts half. Computed from Rényi divergences (Wang, Balle, Kasiviswanathan 2019,
    Theorem 27).
    """
    if not noise or not steps:
        return inf if steps else 0.0
    import dp_accounting
    from dp_accounting import rdp

    gaussian = dp_accounting.GaussianDpEvent(noise / 2)
    event = dp_accounting.SampledWithoutReplacementDpEvent(units, sampled, gaussian)
    known = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(known.compose(event, steps).get_epsilon(delta))


def guarantee(run: ExperimentRun) -> dict[str, float]:
    """Return epsilon and `delta` of a run after its last round; nothing without privacy.

    The keys are `epsilon` for clients, and `example_epsilon` for samples. A run that starts from
    another one has no guarantee.
    """
    part = last_part(run)
    recipe = part.recipe
    if recipe.privacy is None:
        return {}
    client, example = recipe.privacy.client, recipe.privacy.example
    if isinstance(recipe, Recipe) and client is not None:
        epsilon = client_epsilon(recipe, client, part.length.rounds)
        return {"epsilon": epsilon, "delta": delta_of(client, recipe.clients)}
    assert example is not None, "checked by Privacy and by recipes"
    samples, size = _samples(run.partition, "train"), recipe.client.batch_size
    delta = _delta_of_samples(example, samples)
    if isinstance(recipe, Recipe):
        times = _rounds(run.candidates[run.which()].participants)
    else:
        times = dict.fromkeys(samples, 1)
    steps = {client: private_steps(recipe.client, samples[client]) for client in times}
    trainings = [(size, samples[client], times[client] * steps[client]) for client in times]
    if isinstance(recipe, OneShotRecipe) and recipe.aggregator.trained:
        how = recipe.aggregator_training
        assert isinstance(how, FederatedRounds), "checked by OneShotRecipe"
        numbers = _samples(run.partition, "aggregator").values()
        trainings += [(how.batch_size, number, how.rounds * how.steps) for number in numbers]
    return {"example_epsilon": example_epsilon(example, trainings, delta), "delta": delta}


def client_epsilon(recipe: Recipe, how: ClientPrivacy, rounds: int) -> float:
    """Return epsilon of all global models of `rounds` rounds, for a client.

    Each round releases the sums of all groups. A client is in one group, so it changes all sums
    together by no more than a single one.
    """
    taking_part, clients = recipe.participants, recipe.clients
    delta = delta_of(how, clients)
    if recipe.participation == "poisson" or taking_part == clients:
        return poisson_epsilon(how.noise, taking_part / clients, rounds, delta)
    return fixed_size_epsilon(how.noise, taking_part, clients, rounds, delta)


def example_epsilon(
    how: ExamplePrivacy, trainings: Iterable[tuple[int, int, int]], delta: float
) -> float:
    """Return epsilon of all that clients send, for a sample: the largest of all trainings.

    A sample belongs to one client, and trains its model or the aggregator. Only this training
    depends on it directly, and each step draws the sample at random.

    Parameters
    ----------
    trainings : iterable of tuples
        The expected size of a batch, the samples, and the steps in all rounds, of each training.
    """
    steps: dict[float, int] = {}  # the most of all trainings with a rate
    for batch_size, samples, number in trainings:
        rate = sampling_rate(batch_size, samples)
        steps[rate] = max(number, steps.get(rate, 0))
    found = (poisson_epsilon(how.noise, rate, number, delta) for rate, number in steps.items())
    return max(found, default=0.0)


def _samples(histogram: str, role: str) -> dict[int, int]:
    """Return the number of samples of a role of each client, from the histogram of labels."""
    found: Counter[int] = Counter()
    for row in load_table(Path(histogram), ["client", "role", "samples"]).to_pylist():
        if row["role"] == role:
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


# --- measurements ---------------------------------------------------------------------------------

#: The highest value of all rounds, for an experiment with `also: [maximum]`.
AS_RELEASED = "as_released"
#: Measures of a run as a whole, in its last round: dropped updates and all updates, if any may be
#: dropped, and its guarantee by differential privacy, if any, to clients or to samples.
OF_RUNS = (AS_RELEASED, "dropped", "updates", "epsilon", "example_epsilon", "delta")


def measure(run: ExperimentRun, experiment: ExperimentRuns) -> pd.DataFrame:
    """Return the measurements of a run: one row per evaluated round, with columns of `OF_RUNS`.

    Raises
    ------
    FedstageError
        As in `read_metrics`, for the metric of the experiment.
    """
    score: Metric = "top1_accuracy" if experiment.metric in SECONDS else experiment.metric
    frame = read_metrics(run.metrics, score)
    of_run: dict[str, float] = {**_dropped(run), **guarantee(run)}
    if "maximum" in experiment.also:
        of_run[AS_RELEASED] = _highest(run, frame, score)
    before = [np.nan] * (len(frame) - 1)
    return frame.assign(**{name: [*before, float(value)] for name, value in of_run.items()})


def read_metrics(path: str | Path, metric: Metric = "top1_accuracy") -> pd.DataFrame:
    """Read the metrics of one run, ordered by round.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or has a value of `metric` that is not a number.
    """
    frame: pd.DataFrame = frame_of(load_table(path, METRICS_SCHEMA.names))
    for round_, value in zip(frame["round"], frame[metric].astype("float64"), strict=True):
        if not np.isfinite(value):
            raise FedstageError(
                f"{path}: {metric} = {value} in round {round_}: must be a finite number"
            )
    return frame.sort_values("round", ignore_index=True)


def _highest(run: ExperimentRun, metrics: pd.DataFrame, score: Metric) -> float:
    """Return the highest score of a run that is evaluated more than once, or nan.

    For an aggregator, it is the highest score over all rounds of its training and at the end, as
    FENS's released code reports it.
    """
    if run.over_rounds is not None:
        later = load_table(run.over_rounds, [score])[score].to_pylist()
        return max(float(value) for value in (*later, metrics[score].iloc[-1]))
    return float(metrics[score].max()) if len(metrics) > 1 else np.nan


def _dropped(run: ExperimentRun) -> dict[str, int]:
    """Return the numbers of dropped and of all updates of a run; nothing if none may be dropped."""
    tables = run.candidates[run.which()].participants
    dropped = [
        was for path in tables for was in load_table(path, ["dropped"])["dropped"].to_pylist()
    ]
    return {"dropped": sum(dropped), "updates": len(dropped)} if tables else {}
