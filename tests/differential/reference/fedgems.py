"""FedGEMS (Cheng et al. 2021, Algorithm 1).

each client has a model of its own, of its architecture; the pool is empty; (x, y) is public
for each round
    each participant k
        w_k <- steps on  e CE(y, f(x; w_k)) + (1 - e) KL( s(x), sigma(f(x; w_k)) ),
               s of the server's model after the round before, if there was one
        w_k <- local training on its own samples
    by the server's model w as the round ends: for each x
        right: it learns CE; the pool has f(x; w)
        wrong, x in the pool: e CE + (1 - e) KL( sigma(pool(x)), sigma(f(x; w)) )
        wrong, some clients right: the same with sum_k a_k f(x; w_k), a = softmax 1 / H over them
        else: CE
    server: w <- steps on the mean of these
"""

import torch
from torch.nn.functional import cross_entropy


def fedgems(world, *, rounds, epochs, rate, steps, server_rate, epsilon):
    """Return the server's model, and the clients' by number."""
    server, own, pool, heard = world.network(0), {}, {}, None
    images, labels = world.core()
    for t in range(1, rounds + 1):
        said = []
        for client in world.participants(t):
            if client not in own:
                own[client] = world.network(1 + world.group(client))
            if heard is not None:
                learn(own[client], images, labels, heard, world, t, steps, server_rate, epsilon)
            x, y = world.samples(client)
            for batch in world.batches(t, client, len(y), epochs):
                descend(own[client], cross_entropy(own[client](x[batch]), y[batch]), rate)
            with torch.no_grad():
                said.append(own[client](images))
        with torch.no_grad():
            before = server(images)
        known = [
            known_of(row, before[row], [one[row] for one in said], label, pool)
            for row, label in enumerate(labels.tolist())
        ]
        learn(server, images, labels, known, world, t, steps, server_rate, epsilon)
        with torch.no_grad():
            heard = list(server(images))
    return server, own


def known_of(sample, own, said, label, pool):
    """Return the logits that are learnt beside the label, None for no more than that."""
    if int(own.argmax()) == label:
        pool[sample] = own
        return None
    if sample in pool:
        return pool[sample]
    right = [logits for logits in said if int(logits.argmax()) == label]
    if not right:
        return None
    sure = torch.stack([1 / entropy(logits) for logits in right]).softmax(0)
    return sum(share * logits for share, logits in zip(sure, right, strict=True))


def entropy(logits):
    shares = logits.softmax(0)
    return -(shares * shares.log()).sum()


def learn(model, images, labels, known, world, t, steps, rate, epsilon):
    for batch in world.core_batches(steps, t):
        logits, losses = model(images[batch]), []
        for z, sample in zip(logits, batch.tolist(), strict=True):
            hard = cross_entropy(z, labels[sample])
            if known[sample] is None:
                losses.append(hard)
                continue
            q = known[sample].softmax(0)
            soft = (q * (q.log() - z.log_softmax(0))).sum()
            losses.append(epsilon * hard + (1 - epsilon) * soft)
        descend(model, torch.stack(losses).mean(), rate)


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
