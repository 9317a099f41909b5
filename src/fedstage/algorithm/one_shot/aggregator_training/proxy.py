"""A server that trains the aggregator alone, on its own small labelled set.

No client takes part, so only models are sent. The set is `data.server_validation`: training samples
that belong to no client.
"""

from collections.abc import Iterator

from torch import nn

from fedstage.algorithm.one_shot.aggregator_training import Task, Trained, gradient
from fedstage.algorithm.one_shot.aggregator_training.stopping import Progress, follow
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import ProxySet
from fedstage.settings.optimisation import Optimiser
from fedstage.training.batches import public_batches
from fedstage.training.optimisers import optimiser_step, step_sizes


def train(settings: ProxySet, task: Task) -> Trained:
    """Train for at most `settings.steps` steps."""
    return follow(_steps(settings, task), settings, task, settings.steps)


def _steps(settings: ProxySet, task: Task) -> Iterator[Progress]:
    (own,) = task.samples.values()
    moving = {name: nn.Parameter(value.clone()) for name, value in task.start.items()}
    parameters, rate, size = list(moving.values()), settings.learning_rate, settings.batch_size
    optimiser = Optimiser(optimiser=settings.optimiser, learning_rate=rate, batch_size=size)
    move = optimiser_step(parameters, optimiser)
    sizes = step_sizes(optimiser, [rate] * settings.steps, like=parameters[0])
    generator = torch_generator(task.seed, "aggregator", "server", "batches")
    batches = public_batches(len(own), size, settings.steps, generator)
    for step, batch in enumerate(batches):
        loss, slopes = gradient(task.combine, dict(moving), own.at(batch))
        for name, parameter in moving.items():
            parameter.grad = slopes[name]
        move(sizes[step])
        yield {name: value.detach().clone() for name, value in moving.items()}, 0, loss
