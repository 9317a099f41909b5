"""FedLC (Zhang et al. 2022).

for each round t
    each participant i minimises, from w^t on, by steps on batches
        mean_x -log( e_y / sum_c e_c ),  e_c = exp(f_c(x) - tau n_c^(-1/4))
    with its n_c samples of class c; where n_c = 0, e_c = 0
w^{t+1} <- sum_i (n_i / n) w_i
"""

from copy import deepcopy

import torch


def fedlc(world, *, rounds, epochs, rate, tau):
    """Return the model after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            own = deepcopy(model)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                loss = calibrated(own(images[batch]), labels[batch], labels, tau)
                weights = list(own.parameters())
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for weight, gradient in zip(weights, gradients, strict=True):
                        weight -= rate * gradient
            trained.append(own)
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model


def calibrated(logits, labels, of_client, tau):
    counts = [int((of_client == c).sum()) for c in range(logits.shape[1])]
    held = [c for c, count in enumerate(counts) if count]
    margins = torch.tensor([tau / counts[c] ** 0.25 for c in held])
    rest = logits[:, held] - margins
    true = torch.stack([rest[row, held.index(y)] for row, y in enumerate(labels.tolist())])
    return -(true - rest.logsumexp(1)).mean()


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
