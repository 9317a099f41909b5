"""FedNova (Wang et al. 2020, Eqs. 5 to 8), with momentum of the clients and of the server.

    for each round t
        each participant i takes tau_i steps from x:  u <- rho u + g,  x_i <- x_i - eta u
            ||a_i||_1 = (tau_i - rho (1 - rho^tau_i) / (1 - rho)) / (1 - rho)
            d_i = (x - x_i) / (eta ||a_i||_1)
        tau_eff = sum_i p_i ||a_i||_1
        b <- rho_g b + tau_eff sum_i p_i d_i,   x <- x - eta b

u is 0 at the start of every round, and p_i is a participant's share of the participants' samples.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fednova(world, *, rounds, epochs, rate, momentum, server_momentum):
    """Return the model after the last round."""
    model = world.network()
    buffers = [torch.zeros_like(weight) for weight in model.parameters()]
    for t in range(1, rounds + 1):
        directions, masses, sizes = [], [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            end = local_training(model, images, labels, batches, rate, momentum)
            steps = len(batches)
            mass = (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
            starts = [weight.detach() for weight in model.parameters()]
            moved = zip(starts, end, strict=True)
            directions.append([(x - y) / (rate * mass) for x, y in moved])
            masses.append(mass)
            sizes.append(len(labels))
        shares = [size / sum(sizes) for size in sizes]
        effective = sum(p * mass for p, mass in zip(shares, masses, strict=True))
        with torch.no_grad():
            for j, x in enumerate(model.parameters()):
                mean = sum(p * d[j] for p, d in zip(shares, directions, strict=True))
                buffers[j] = server_momentum * buffers[j] + effective * mean
                x -= rate * buffers[j]
    return model


def local_training(start, images, labels, batches, rate, momentum):
    """Return the weights after the steps."""
    model = deepcopy(start)
    weights = list(model.parameters())
    buffers = [torch.zeros_like(weight) for weight in weights]
    for batch in batches:
        loss = cross_entropy(model(images[batch]), labels[batch])
        gradients = torch.autograd.grad(loss, weights)
        buffers = [momentum * u + g for u, g in zip(buffers, gradients, strict=True)]
        with torch.no_grad():
            for weight, u in zip(weights, buffers, strict=True):
                weight -= rate * u
    return [weight.detach() for weight in weights]
