"""FedEMA-Distill (Reguieg et al. 2026).

v is the server's model;  for each round
    each participant i trains from v to w_i
    w <- v, then steps on  tau^2 KL( sigma( z(d) / tau ), sigma( f(d; w) / tau ) )
        z(d) = the mean or the elementwise median of f(d; w_i)
    v <- decay v + (1 - decay) w
"""

from copy import deepcopy

import torch
from reference.feddf import average, distil, local_training


def fedema(world, *, rounds, epochs, rate, steps, server_rate, tau, decay, median):
    """Return v after the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained = []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
        with torch.no_grad():
            said = torch.stack([each(world.public) for each in trained])
        teacher = said.quantile(0.5, dim=0) if median else said.mean(0)
        student = deepcopy(model)
        distil(student, world.public, teacher, world.public_batches(steps), server_rate, tau)
        model = average([model, student], [decay, 1 - decay])
    return model
