"""The median and the trimmed mean (Yin et al. 2018), Krum and Multi-Krum (Blanchard et al. 2017).

for each round t
    each participant i trains w^t as in FedAvg, and ends with w_i
    median         w^{t+1}[x] <- median of w_i[x], for each number x
    trimmed mean   w^{t+1}[x] <- mean of w_i[x] without the b largest and b smallest
    krum           s(i) = sum of ||w_i - w_j||^2 over the n - f - 2 nearest j != i
                   w^{t+1} <- mean of the m models with the smallest s
"""

from copy import deepcopy

import numpy as np
import torch
from torch.nn.functional import cross_entropy


def robust(world, *, rounds, epochs, rate, rule, trimmed, faulty, selected):
    """Return the model after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained = []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
        if rule == "krum":
            trained = best(trained, faulty, selected)
        model = each_number(trained, rule, trimmed)
    return model


def best(models, faulty, selected):
    vectors = [np.concatenate([flat(weight) for weight in model.parameters()]) for model in models]
    scores = []
    for i, own in enumerate(vectors):
        others = [((own - other) ** 2).sum() for j, other in enumerate(vectors) if j != i]
        scores.append(sum(sorted(others)[: len(models) - faulty - 2]))
    return [models[i] for i in np.argsort(scores)[:selected]]


def each_number(models, rule, trimmed):
    result = deepcopy(models[0])
    for weights in zip(result.parameters(), *(one.parameters() for one in models), strict=True):
        rows = np.array([flat(weight) for weight in weights[1:]])
        if rule == "median":
            numbers = np.median(rows, axis=0)
        elif rule == "trimmed_mean":
            numbers = np.sort(rows, axis=0)[trimmed : len(rows) - trimmed].mean(axis=0)
        else:
            numbers = rows.mean(axis=0)
        with torch.no_grad():
            weights[0].copy_(torch.from_numpy(numbers).reshape(weights[0].shape))
    return result


def flat(weight):
    return weight.detach().double().numpy().ravel()


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
