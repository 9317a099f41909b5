"""FedAvg with clients that train by DP-SGD (Abadi et al. 2016, Algorithm 1).

for each round t
    for each participant i, which has n_i samples
        w_i <- w,  and for each batch, with each sample with probability q_i = min(1, B / n_i):
            g_j <- grad l(w_i; j) of each sample j,  g_j <- g_j min(1, C / |g_j|)
            w_i <- w_i - eta (sum_j g_j + z C xi) / (q_i n_i),  xi standard normal
    w <- sum_i (n_i / n) w_i,  n = sum_i n_i
"""

from copy import deepcopy

import torch
from reference.fedavg import average
from torch.nn.functional import cross_entropy


def dp_sgd(world, *, rounds, epochs, rate, batch, clip, noise, normal):
    """Return the model after the last round, and how long each sample's gradient was.

    `normal` returns the standard normal tensors of a round, client and step, one a parameter.
    """
    model, lengths = world.network(), []
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            expected = min(batch, len(labels))
            own = deepcopy(model)
            for step, drawn in enumerate(world.batches(t, client, len(labels), epochs)):
                total = [noise * clip * each for each in normal(t, client, step)]
                for sample in drawn:
                    gradient = of_sample(own, images[sample], labels[sample])
                    length = float(sum(part.square().sum() for part in gradient)) ** 0.5
                    lengths.append(length)
                    shorter = min(1.0, clip / length)
                    total = [a + shorter * part for a, part in zip(total, gradient, strict=True)]
                with torch.no_grad():
                    for weight, moved in zip(own.parameters(), total, strict=True):
                        weight -= rate * moved / expected
            trained.append(own)
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model, lengths


def of_sample(model, image, label):
    loss = cross_entropy(model(image[None]), label[None])
    return torch.autograd.grad(loss, list(model.parameters()))
