"""FedDF for several architectures (Lin et al. 2020, Algorithm 3), without early stopping.

for each round t
    each participant k trains from M_{M(k)} to w_k
    M_i <- sum (n_k / n) w_k over those with M(k) = i, if there are any
    each M_i, and the server's own model if there is one, <- steps on
        tau^2 KL( sigma( mean_k f(x; w_k) / tau ), sigma( f(x; w) / tau ) )
    with all w_k, of whichever architecture, as the teacher
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def feddf_heterogeneous(
    world, *, architectures, server, rounds, epochs, rate, steps, server_rate, tau
):
    """Return the models after the last round, with `server` the server's first."""
    first = 1 if server else 0
    models = [world.network(number) for number in range(first + architectures)]
    for t in range(1, rounds + 1):
        trained, sizes = [[] for _ in models], [[] for _ in models]
        for client in world.participants(t):
            i = first + world.group(client)
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained[i].append(local_training(models[i], images, labels, batches, rate))
            sizes[i].append(len(labels))
        for i, group in enumerate(trained):
            if group:
                models[i] = average(group, [size / sum(sizes[i]) for size in sizes[i]])
        everyone = [model for group in trained for model in group]
        with torch.no_grad():
            teacher = sum(model(world.public) for model in everyone) / len(everyone)
        for model in models:
            distil(model, world.public, teacher, world.public_batches(steps), server_rate, tau)
    return models


def distil(model, images, teacher, batches, rate, tau):
    for batch in batches:
        wanted = (teacher[batch] / tau).softmax(1)
        said = (model(images[batch]) / tau).log_softmax(1)
        loss = tau**2 * (wanted * (wanted.log() - said)).sum(1).mean()
        descend(model, loss, rate)


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    for batch in batches:
        descend(model, cross_entropy(model(images[batch]), labels[batch]), rate)
    return model


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
