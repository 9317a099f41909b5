"""FedProx (Li et al. 2020, Algorithm 2).

Each participant i approximately minimises

    h_i(w) = l_i(w) + (mu / 2) ||w - w^t||^2

by steps on batches, from the model w^t of the round; the server averages by samples, as FedAvg.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedprox(world, *, rounds, epochs, rate, mu):
    """Return the model after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate, mu))
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model


def local_training(start, images, labels, batches, rate, mu):
    model = deepcopy(start)
    weights, anchors = list(model.parameters()), [w.detach() for w in start.parameters()]
    for batch in batches:
        distance = sum((w - a).square().sum() for w, a in zip(weights, anchors, strict=True))
        loss = cross_entropy(model(images[batch]), labels[batch]) + mu / 2 * distance
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient
    return model


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
