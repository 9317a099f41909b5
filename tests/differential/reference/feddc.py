"""FedDC (Gao et al. 2022), with the control variates and the server of its released code.

    for each round t, with participants P_t of N clients
        for each i in P_t, by steps from x on batches
            w_i = argmin  L_i(w) + alpha / 2 ||w - (x - h_i)||^2 + <w, c - c_i>
            h_i <- h_i + w_i - x
            c_i+ = c_i - c + (x - w_i) / (K eta),   K steps
        c <- c + 1 / N sum_{i in P_t} (c_i+ - c_i)
        x <- mean_{i in P_t} w_i + mean over all clients h_i

Vectors are lists of tensors, one a parameter.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def feddc(world, *, rounds, epochs, rate, alpha):
    """Return the model after the last round."""
    model = world.network()
    zero = [torch.zeros_like(weight) for weight in model.parameters()]
    c, own, drifts = zero, [zero] * world.clients, [zero] * world.clients
    for t in range(1, rounds + 1):
        start, ends, before = values(model), [], c
        for client in world.participants(t):
            images, labels = world.samples(client)
            end, taken = deepcopy(model), 0
            towards = [x - h for x, h in zip(start, drifts[client], strict=True)]
            pulled = [a - b for a, b in zip(before, own[client], strict=True)]
            for batch in world.batches(t, client, len(labels), epochs):
                step(end, images[batch], labels[batch], towards, pulled, alpha, rate)
                taken += 1
            moved = [w - x for w, x in zip(values(end), start, strict=True)]
            drifts[client] = [h + d for h, d in zip(drifts[client], moved, strict=True)]
            new = [-p - d / (taken * rate) for p, d in zip(pulled, moved, strict=True)]
            c = [a + (n - o) / world.clients
                 for a, n, o in zip(c, new, own[client], strict=True)]  # fmt: skip
            own[client] = new
            ends.append(values(end))
        with torch.no_grad():
            for weight, *parts in zip(model.parameters(), *ends, *drifts, strict=True):
                models, theirs = parts[: len(ends)], parts[len(ends) :]
                weight.copy_(sum(models) / len(models) + sum(theirs) / len(theirs))
    return model


def step(model, images, labels, towards, pulled, alpha, rate):
    weights = list(model.parameters())
    distance = sum((w - a).square().sum() for w, a in zip(weights, towards, strict=True))
    linear = sum((w * p).sum() for w, p in zip(weights, pulled, strict=True))
    loss = cross_entropy(model(images), labels) + alpha / 2 * distance + linear
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


def values(model):
    return [weight.detach().clone() for weight in model.parameters()]
