"""FedSDD, which is FedEED (FedSDD, Eqs. 2, 4, 5; FedEED, Algorithm 1).

    w*_{0,k} from K seeds
    for each round t
        participants in K groups of equal size, k = 0 .. K-1
            each trains from w*_{t-1,k} to w_i;   w_{t,k} = sum_i (n_i / n) w_i
        teacher(x) = mean of f(x; w_{r,k}) over all k and the last R rounds r, as far as they exist
        w*_{t,k} = w_{t,k}, and the student w*_{t,0} takes steps from there on
            tau^2 KL( sigma(teacher(x) / tau), sigma(f(x; w) / tau) )

Basic distillation has all K models as students, after `warm_up` rounds without any.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedsdd(
    world, *, groups, checkpoints, rounds, epochs, rate, steps, server_rate, tau, basic=False,
    warm_up=0,
):  # fmt: skip
    """Return the K global models after the last round."""
    models = [world.network(k) for k in range(groups)]
    last_rounds = []
    for t in range(1, rounds + 1):
        participants = world.participants(t)
        share = len(participants) // groups
        averaged = []
        for k, start in enumerate(models):
            trained, sizes = [], []
            for client in participants[k * share : (k + 1) * share]:
                images, labels = world.samples(client)
                batches = world.batches(t, client, len(labels), epochs)
                trained.append(local_training(start, images, labels, batches, rate))
                sizes.append(len(labels))
            averaged.append(average(trained, [size / sum(sizes) for size in sizes]))
        last_rounds = [*last_rounds, averaged][-checkpoints:]
        with torch.no_grad():
            members = [model(world.public) for past in last_rounds for model in past]
            teacher = sum(members) / len(members)
        models = list(averaged)
        students = [] if t <= warm_up else range(groups) if basic else [0]
        for k in students:
            batches = world.public_batches(steps)
            models[k] = distil(averaged[k], world.public, teacher, batches, server_rate, tau)
    return models


def distil(start, images, teacher, batches, rate, tau):
    model = deepcopy(start)
    for batch in batches:
        wanted = (teacher[batch] / tau).softmax(1)
        said = (model(images[batch]) / tau).log_softmax(1)
        descend(model, tau**2 * (wanted * (wanted.log() - said)).sum(1).mean(), rate)
    return model


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    for batch in batches:
        descend(model, cross_entropy(model(images[batch]), labels[batch]), rate)
    return model


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
