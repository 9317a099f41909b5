"""How many seconds each job lasts: constants, or draws from keyed generators.

The keys have no method in them, so methods that share a seed share what their jobs have in common:
client n trains as long in round t whatever is done with its model.
"""

from collections.abc import Mapping
from math import log, sqrt

from fedstage.plan.jobs import Edges, Job, members
from fedstage.randomness import Key, numpy_generator
from fedstage.settings.lines import Line
from fedstage.settings.simulation import Seconds, Simulation, Varying


def seconds_of(
    line: Line, edges: Edges, clients: Mapping[Job, int], settings: Simulation
) -> dict[Job, float]:
    """Return the seconds of each job.

    Parameters
    ----------
    clients : mapping
        The client of each local training.
    """
    return {job: _seconds(line, job, clients, settings) for job in edges}


def _seconds(line: Line, job: Job, clients: Mapping[Job, int], settings: Simulation) -> float:
    if job.stage == "local_training":
        client = clients[job]
        slowness = _draw(_around_one(settings.clients_differ), line.seed, "slowness", client)
        return slowness * _draw(settings.local_training, line.seed, job.stage, job.round, client)
    drawn = _draw(getattr(settings, job.stage), line.seed, job.stage, job.round, job.group)
    return drawn * (members(line, job) if job.stage == "logits" else 1)


def _around_one(variation: float) -> Seconds:
    return Varying(mean=1.0, variation=variation) if variation else 1.0


def _draw(seconds: Seconds, seed: int, *key: Key) -> float:
    """Draw from the lognormal distribution of this mean and deviation over mean."""
    if not isinstance(seconds, Varying):
        return float(seconds)
    variance = log(1 + seconds.variation**2)
    generator = numpy_generator(seed, "simulation", *key)
    return float(generator.lognormal(log(seconds.mean) - variance / 2, sqrt(variance)))
