"""FedGKD and FedGKD-VOTE (Yao et al. 2023, Algorithm 1).

    for each round t
        w_bar = mean of w^{t-1}, ..., w^{t-M}, as far as there are any but the initial w^0
        each participant i minimises, from w^{t-1} on, by steps on batches
            CE + (gamma / 2) D( f(x; w_bar), f(x; w_i) )
        or, by votes, CE + (gamma / 2) sum_j lambda_j D( f(x; w^{t-j}), f(x; w_i) )
            lambda = softmax over j of - loss(w^{t-j}), on the server's validation set
        D = T^2 mean_x KL( sigma(a / T), sigma(b / T) )
    w^t <- (1/m) sum_i w_i

In round 1 there is no teacher.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedgkd(world, *, rounds, epochs, rate, gamma, models, tau, voting):
    """Return the model after the last round."""
    model, past = world.network(), []
    for t in range(1, rounds + 1):
        last, trained = past[-models:], []
        teachers, shares = last, [0.0] * len(last)
        if last and not voting:
            teachers, shares = [average(last)], [1.0]
        elif last:
            shares = votes(last, *world.validation())
        for client in world.participants(t):
            own = deepcopy(model)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                z = own(images[batch])
                loss = cross_entropy(z, labels[batch])
                for share, teacher in zip(shares, teachers, strict=True):
                    known = teacher(images[batch]).detach()
                    loss = loss + gamma / 2 * share * distance(known, z, tau)
                weights = list(own.parameters())
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for weight, gradient in zip(weights, gradients, strict=True):
                        weight -= rate * gradient
            trained.append(own)
        model = average(trained)
        past.append(model)
    return model


def distance(known, learnt, tau):
    q, p = (known / tau).softmax(1), (learnt / tau).softmax(1)
    return tau**2 * (q * (q.log() - p.log())).sum(1).mean()


def votes(models, images, labels):
    with torch.no_grad():
        powers = [torch.exp(-cross_entropy(own(images), labels)) for own in models]
    return [float(power / sum(powers)) for power in powers]


def average(models):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(values) / len(values))
    return mean
