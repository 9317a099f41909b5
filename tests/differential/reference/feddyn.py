"""FedDyn (Acar et al. 2021, Algorithm 1).

    for each round t, with participants P_t of m clients
        for each k in P_t, by steps from theta^{t-1} on batches
            theta_k = argmin  L_k(theta) - <g_k, theta> + alpha / 2 ||theta - theta^{t-1}||^2
            g_k <- g_k - alpha (theta_k - theta^{t-1})
        h <- h - alpha / m sum_{k in P_t} (theta_k - theta^{t-1})
        theta^t = mean_{k in P_t} theta_k - h / alpha

Vectors are lists of tensors, one a parameter.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def feddyn(world, *, rounds, epochs, rate, alpha):
    """Return the model after the last round."""
    model = world.network()
    zero = [torch.zeros_like(weight) for weight in model.parameters()]
    h, g = zero, [zero] * world.clients
    for t in range(1, rounds + 1):
        start, ends = values(model), []
        for client in world.participants(t):
            images, labels = world.samples(client)
            end = deepcopy(model)
            for batch in world.batches(t, client, len(labels), epochs):
                step(end, images[batch], labels[batch], start, g[client], alpha, rate)
            moved = [w - s for w, s in zip(values(end), start, strict=True)]
            g[client] = [own - alpha * d for own, d in zip(g[client], moved, strict=True)]
            ends.append(values(end))
        sums = [sum(own) for own in zip(*ends, strict=True)]
        h = [old - alpha / world.clients * (total - len(ends) * s)
             for old, total, s in zip(h, sums, start, strict=True)]  # fmt: skip
        with torch.no_grad():
            for weight, total, own in zip(model.parameters(), sums, h, strict=True):
                weight.copy_(total / len(ends) - own / alpha)
    return model


def step(model, images, labels, start, g, alpha, rate):
    weights = list(model.parameters())
    linear = sum((own * w).sum() for own, w in zip(g, weights, strict=True))
    distance = sum((w - s).square().sum() for w, s in zip(weights, start, strict=True))
    loss = cross_entropy(model(images), labels) - linear + alpha / 2 * distance
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


def values(model):
    return [weight.detach().clone() for weight in model.parameters()]
