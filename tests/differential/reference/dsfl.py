"""DS-FL (Itahara et al. 2023, Algorithm 1), with entropy reduction and a model on the server.

    each client has a model of its own, of its architecture;  t(x) is unknown at first
    for each round
        each participant k
            w_k <- steps on  mean_x CE( t(x), sigma(f(x; w_k)) ),  if t(x) is known
            w_k <- local training on its own samples
        t(x) = softmax( 1/m sum_k sigma(f(x; w_k)) / T )
        server: w <- steps on  mean_x CE( t(x), sigma(f(x; w)) )

Clients learn t(x) when they hear of it, which is at the begin of a round that they take part in.
"""

import torch
from torch.nn.functional import cross_entropy


def dsfl(world, *, rounds, epochs, rate, steps, server_rate, temperature):
    """Return the server's model, and the clients' by number."""
    server, own, target = world.network(0), {}, None
    for t in range(1, rounds + 1):
        said = []
        for client in world.participants(t):
            if client not in own:
                own[client] = world.network(1 + world.group(client))
            if target is not None:
                learn(own[client], target, world, steps, server_rate)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                loss = cross_entropy(own[client](images[batch]), labels[batch])
                descend(own[client], loss, rate)
            with torch.no_grad():
                said.append(own[client](world.public).softmax(1))
        target = (sum(said) / len(said) / temperature).softmax(1)
        learn(server, target, world, steps, server_rate)
    return server, own


def learn(model, target, world, steps, rate):
    for batch in world.public_batches(steps):
        said = model(world.public[batch]).log_softmax(1)
        descend(model, -(target[batch] * said).sum(1).mean(), rate)


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
