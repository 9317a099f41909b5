"""FedAvg (McMahan et al. 2017, Algorithm 1; FedSDD, Eq. 2).

for each round t
    for each participant i
        w_i <- w,  and for each batch b of its epochs:  w_i <- w_i - eta grad l(w_i; b)
    w <- sum_i (n_i / n) w_i,  n = sum_i n_i
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedavg(world, *, rounds, epochs, rate):
    """Return the model after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    weights = list(model.parameters())
    for batch in batches:
        loss = cross_entropy(model(images[batch]), labels[batch])
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
