"""SCARLET (Azuma et al. 2026): DS-FL with labels that are kept, and a power in place of T.

    each client has a model of its own, of its architecture;  the cache is empty
    for each round t
        each participant k
            w_k <- steps on  mean_x KL( t(x), sigma(f(x; w_k)) ),  x of round t - 1
            w_k <- local training on its own samples
        for x of round t: if there is no label of it, or it was made in a round s <= t - D
            p(x) = 1/m sum_k sigma(f(x; w_k)),  t(x) = p(x)^b / sum_c p_c(x)^b,  made in round t
            it is kept, unless it takes the place of an older one
        server: w <- steps on  mean_x KL( t(x), sigma(f(x; w)) ),  x of round t

The gradient of KL is that of the cross entropy.
"""

import torch
from torch.nn.functional import cross_entropy


def scarlet(world, *, rounds, epochs, rate, steps, server_rate, power, duration, drawn):
    """Return the server's model, and the clients' by number.

    `drawn` returns the public samples of a round, of as many; None for all.
    """
    server, own, cache, taught = world.network(0), {}, {}, None
    for t in range(1, rounds + 1):
        last = []
        for client in world.participants(t):
            if client not in own:
                own[client] = world.network(1 + world.group(client))
            if taught is not None:
                learn(own[client], *taught, world, steps, server_rate)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                loss = cross_entropy(own[client](images[batch]), labels[batch])
                descend(own[client], loss, rate)
            last.append(own[client])
        used = drawn(len(world.public), t)
        used = list(range(len(world.public))) if used is None else used.tolist()
        target = labels_of(used, t, last, world, cache, power, duration)
        taught = used, target
        learn(server, *taught, world, steps, server_rate)
    return server, own


def labels_of(used, t, models, world, cache, power, duration):
    with torch.no_grad():
        mean = sum(model(world.public).softmax(1) for model in models) / len(models)
    sharp = mean**power / (mean**power).sum(1, keepdim=True)
    found = []
    for sample in used:
        label, made = cache.get(sample, (None, None))
        if label is None:
            label = sharp[sample]
            cache[sample] = label, t
        elif made + duration <= t:
            label = sharp[sample]
            del cache[sample]
        found.append(label)
    return torch.stack(found)


def learn(model, used, target, world, steps, rate):
    images = world.public[used]
    for batch in world.public_batches(steps):
        batch = batch[batch < len(used)]
        said = model(images[batch]).log_softmax(1)
        descend(model, -(target[batch] * said).sum(1).mean(), rate)


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
