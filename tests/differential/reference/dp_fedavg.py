"""DP-FedAvg (McMahan et al. 2018, Algorithm 1), flat clipping, equal weights, n on average.

for each round t
    for each participant i
        D_i <- local training of w, minus w;  D_i <- D_i min(1, C / |D_i|)
    w <- w + (sum_i D_i + z C xi_t) / n,  xi_t standard normal
"""

import torch
from reference.fedavg import local_training


def dp_fedavg(world, *, rounds, epochs, rate, clip, noise, expected, normal):
    """Return the model after the last round, and how long each change was.

    `normal` returns the standard normal tensors of a round, one a parameter.
    """
    model, lengths = world.network(), []
    for t in range(1, rounds + 1):
        total = [noise * clip * drawn for drawn in normal(t)]
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained = local_training(model, images, labels, batches, rate)
            change = [
                (own - before).detach()
                for own, before in zip(trained.parameters(), model.parameters(), strict=True)
            ]
            length = float(sum(part.square().sum() for part in change)) ** 0.5
            lengths.append(length)
            shorter = min(1.0, clip / length)
            total = [one + shorter * part for one, part in zip(total, change, strict=True)]
        with torch.no_grad():
            for weight, moved in zip(model.parameters(), total, strict=True):
                weight += moved / expected
    return model, lengths
