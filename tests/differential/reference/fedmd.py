"""FedMD (Li and Wang 2019, Algorithm 1), without the transfer from labelled public data.

each client has a model of its own, of its architecture;  f~(x) is unknown at first
for each round
    each participant k
        digest:   w_k <- steps on  mean_{x,c} | f_c(x; w_k) - f~_c(x) |,  if f~(x) is known
        revisit:  w_k <- local training on its own samples
    f~(x) = 1/m sum_k f(x; w_k)
"""

import torch
from torch.nn.functional import cross_entropy


def fedmd(world, *, rounds, epochs, rate, steps, server_rate):
    """Return the models of the last round's participants, and all clients' by number."""
    own, consensus = {}, None
    for t in range(1, rounds + 1):
        taking_part = world.participants(t)
        for client in taking_part:
            if client not in own:
                own[client] = world.network(world.group(client))
            model = own[client]
            for batch in world.public_batches(steps) if consensus is not None else []:
                apart = model(world.public[batch]) - consensus[batch]
                descend(model, apart.abs().mean(), server_rate)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                descend(model, cross_entropy(model(images[batch]), labels[batch]), rate)
        last = [own[client] for client in taking_part]
        with torch.no_grad():
            consensus = sum(model(world.public) for model in last) / len(last)
    return last, own


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
