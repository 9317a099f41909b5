"""SCAFFOLD (Karimireddy et al. 2020, Algorithm 1), option II, with eta_g = 1.

    for each round t, with participants S of N clients
        for each i in S
            y_i <- x,  and for each of K batches:  y_i <- y_i - eta (g_i(y_i) - c_i + c)
            c_i+ <- c_i - c + (x - y_i) / (K eta)
        x <- x + (1 / |S|) sum_i (y_i - x)
        c <- c + (1 / N) sum_i (c_i+ - c_i),   c_i <- c_i+

Vectors are lists of tensors, one a parameter.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def scaffold(world, *, rounds, epochs, rate):
    """Return the model after the last round, and the server's variate c."""
    model = world.network()
    zero = [torch.zeros_like(weight) for weight in model.parameters()]
    server, own = zero, [zero] * world.clients
    for t in range(1, rounds + 1):
        ends, changes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            end, steps = deepcopy(model), 0
            for batch in world.batches(t, client, len(labels), epochs):
                step(end, images[batch], labels[batch], own[client], server, rate)
                steps += 1
            moved = zip(own[client], server, values(model), values(end), strict=True)
            new = [ci - c + (x - y) / (steps * rate) for ci, c, x, y in moved]
            changes.append([n - ci for n, ci in zip(new, own[client], strict=True)])
            own[client] = new
            ends.append(values(end))
        with torch.no_grad():
            for x, *ys in zip(model.parameters(), *ends, strict=True):
                x += sum(y - x for y in ys) / len(ys)
        server = [c + sum(d) / world.clients for c, *d in zip(server, *changes, strict=True)]
    return model, server


def step(model, images, labels, own, server, rate):
    gradients = gradients_of(model, images, labels)
    with torch.no_grad():
        for y, g, ci, c in zip(model.parameters(), gradients, own, server, strict=True):
            y -= rate * (g - ci + c)


def gradients_of(model, images, labels):
    loss = cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, list(model.parameters()))


def values(model):
    return [weight.detach() for weight in model.parameters()]
