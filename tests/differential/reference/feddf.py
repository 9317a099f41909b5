"""FedDF (Lin et al. 2020, Algorithm 1), without drop-worst and early stopping.

for each round t
    each participant i trains from w to w_i;   w <- sum_i (n_i / n) w_i
    for each of N batches of public images d
        w <- w - eta grad tau^2 KL( sigma( mean_i f(d; w_i) / tau ), sigma( f(d; w) / tau ) )
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def feddf(world, *, rounds, epochs, rate, steps, server_rate, tau):
    """Return the student of the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
        with torch.no_grad():
            teacher = sum(each(world.public) for each in trained) / len(trained)
        distil(model, world.public, teacher, world.public_batches(steps), server_rate, tau)
    return model


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
