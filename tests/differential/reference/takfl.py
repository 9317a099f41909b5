"""TAKFL (Morafah et al. 2024).

for each round
    each participant k trains from M_{M(k)} to w_k;   a_i <- average of those with M(k) = i
    for each prototype i, and each prototype j with participants
        w_ij <- a_i, then steps on  tau^2 KL( mean_{M(k) = j} f(x; w_k), f(x; w) )
                                  + gamma tau^2 KL( f(x; a_i), f(x; w) )
    M_i <- a_i + sum_j lambda_j (w_ij - a_i)
        lambda_j in {0, 1 / parts, ..., 1} with sum 1: the best on the server's labelled images
"""

from copy import deepcopy
from itertools import product

import torch
from reference.feddf import average, descend, local_training
from torch.nn.functional import cross_entropy


def takfl(world, *, architectures, rounds, epochs, rate, steps, server_rate, tau, gamma, parts):
    """Return the models after the last round."""
    models = [world.network(number) for number in range(architectures)]
    for t in range(1, rounds + 1):
        trained, sizes = [[] for _ in models], [[] for _ in models]
        for client in world.participants(t):
            i = world.group(client)
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained[i].append(local_training(models[i], images, labels, batches, rate))
            sizes[i].append(len(labels))
        for i, group in enumerate(trained):
            if group:
                models[i] = average(group, [size / sum(sizes[i]) for size in sizes[i]])
        with torch.no_grad():
            teachers = [sum(w(world.public) for w in group) / len(group)
                        for group in trained if group]  # fmt: skip
        models = [
            merge(start, [
                distil(world, start, teacher, steps, server_rate, tau, gamma)
                for teacher in teachers
            ], world, parts)
            for start in models
        ]  # fmt: skip
    return models


def distil(world, start, teacher, steps, rate, tau, gamma):
    model = deepcopy(start)
    with torch.no_grad():
        before = start(world.public)
    for batch in world.public_batches(steps):
        said = model(world.public[batch])
        loss = kl(teacher[batch], said, tau) + gamma * kl(before[batch], said, tau)
        descend(model, loss, rate)
    return model


def kl(teacher, student, tau):
    p, q = (teacher / tau).log_softmax(1), (student / tau).log_softmax(1)
    return tau**2 * (p.exp() * (p - q)).sum(1).mean()


def merge(start, students, world, parts):
    images, labels = world.validation()
    found = []
    for counts in product(range(parts + 1), repeat=len(students)):
        if sum(counts) != parts:
            continue
        model = deepcopy(start)
        with torch.no_grad():
            weights = zip(model.parameters(), *(w.parameters() for w in students), strict=True)
            for weight, *ends in weights:
                moved = sum(n / parts * (end - weight) for n, end in zip(counts, ends, strict=True))
                weight += moved
            said = model(images)
        right = int((said.argmax(1) == labels).sum())
        found.append((right, -float(cross_entropy(said, labels)), model))
    return max(found, key=lambda one: one[:2])[2]
