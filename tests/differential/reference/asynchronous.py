"""Stale participants: FedAvg, FedAsync (Xie et al. 2019) and FedBuff (Nguyen et al. 2022).

for each round t
    for each participant i, which starts from w_b, the model after round b <= t - 1, d = t - 1 - b
        w_i <- w_b,  and for each batch b of its epochs:
            w_i <- w_i - eta (grad l(w_i; b) + mu (w_i - w_b))
        s_i = (1 + d)^-a
    FedAvg, FedAsync    w_t <- w_{t-1} + eta_g sum_i p_i s_i (w_i - w_{t-1})
    FedBuff             w_t <- w_{t-1} + eta_g sum_i p_i s_i (w_i - w_b)

FedAvg has a = mu = 0, eta_g = 1 and shares p_i by samples, FedBuff equal ones.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def asynchronous(world, *, rounds, epochs, rate, mu, exponent, server_rate, uniform, changes):
    """Return the model after the last round."""
    models = [world.network()]
    for t in range(1, rounds + 1):
        moves, sizes = [], []
        for client, base in zip(world.participants(t), world.base_rounds(t), strict=True):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            start = list(models[base].parameters())
            end = local_training(models[base], images, labels, batches, rate, mu)
            since = start if changes else list(models[t - 1].parameters())
            factor = server_rate / (1 + (t - 1 - base)) ** exponent
            moves.append([factor * (w - v).detach() for w, v in zip(end, since, strict=True)])
            sizes.append(1 if uniform else len(labels))
        model = deepcopy(models[-1])
        with torch.no_grad():
            for j, w in enumerate(model.parameters()):
                w += sum(n / sum(sizes) * move[j] for n, move in zip(sizes, moves, strict=True))
        models.append(model)
    return models[-1]


def local_training(start, images, labels, batches, rate, mu):
    model, anchors = deepcopy(start), list(start.parameters())
    weights = list(model.parameters())
    for batch in batches:
        loss = cross_entropy(model(images[batch]), labels[batch])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, v, gradient in zip(weights, anchors, gradients, strict=True):
                w -= rate * (gradient + mu * (w - v))
    return weights
