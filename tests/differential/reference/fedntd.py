"""FedNTD (Lee et al. 2022, Algorithm 1).

    for each round t
        each participant i minimises, from w^t on, by steps on batches
            CE + beta tau^2 mean_x KL(q, p)
            q, p = softmax over the classes but y of the logits / tau, by w^t and by w_i
    w^{t+1} <- sum_i (n_i / n) w_i

The factor tau^2 is that of the released code.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedntd(world, *, rounds, epochs, rate, beta, tau):
    """Return the model after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            own = deepcopy(model)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                x, y = images[batch], labels[batch]
                z = own(x)
                loss = cross_entropy(z, y) + beta * tau**2 * distance(model(x).detach(), z, y, tau)
                weights = list(own.parameters())
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for weight, gradient in zip(weights, gradients, strict=True):
                        weight -= rate * gradient
            trained.append(own)
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model


def distance(known, learnt, labels, tau):
    """Return mean KL(q, p) over the classes that are not the label."""
    others = torch.ones_like(known, dtype=torch.bool)
    others[range(len(labels)), labels] = False
    q, p = ((z[others].reshape(len(labels), -1) / tau).softmax(1) for z in (known, learnt))
    return (q * (q.log() - p.log())).sum(1).mean()


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
