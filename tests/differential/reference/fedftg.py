"""FedFTG (Zhang et al. 2022), FedFTG as released, and FedSDD with its generator.

for each round t
    each participant i trains from w to w_i, with n_i^y samples of class y
    w <- sum_i (n_i / n) w_i,     alpha_i^y = n_i^y / sum_j n_j^y
    for each batch z, y:   x = G(z, y)
        Adam on G, with w fixed:
            sum_i mean alpha_i^y ( c CE(f(x; w_i), y) - tau^2 KL( f(x; w_i), f(x; w) ) ) + d L_dis
            L_dis = exp( - mean over pairs of mean |x_a - x_b| mean (z_a - z_b)^2 )
        as released for each i in turn:
            mean( c CE alpha_i^y ) - mean alpha_i^y mean |f(x; w_i) - f(x; w)| + d L_dis / m
            with the mean CE and with f(x; w_i) as a number in the difference
        several times, with G fixed:
            w <- w - eta grad mean sum_i alpha_i^y tau^2 KL( f(x; w_i), f(x; w) )
"""

from copy import deepcopy

import torch
from reference.feddf import average, descend, local_training
from reference.image_network import image_network
from reference.network import CLASSES
from torch.nn.functional import cross_entropy, one_hot


def fedftg(world, *, rounds, epochs, rate, drawn, **generated):
    """Return w and G; `drawn` gives the z and y of a round, `first` has G's first weights."""
    model, network = world.network(), None
    for t in range(1, rounds + 1):
        trained, counts = train(world, t, model, world.participants(t), epochs, rate)
        sizes = [sum(own) for own in counts]
        model = average(trained, [size / sum(sizes) for size in sizes])
        latent = drawn(t, counts)
        network = learn(world, model, network, trained, counts, latent, **generated)
    return model, network


def fedsdd_generated(world, *, groups, checkpoints, rounds, epochs, rate, drawn, **generated):
    """Return FedSDD's K global models, of which the first learns from G's images.

    The teachers are the averages w_{r,k} of the last rounds; n_i^y are of all participants of a
    group.
    """
    models, network, last_rounds = [world.network(k) for k in range(groups)], None, []
    for t in range(1, rounds + 1):
        participants = world.participants(t)
        share = len(participants) // groups
        averaged = []
        for k, start in enumerate(models):
            own = participants[k * share : (k + 1) * share]
            trained, counts = train(world, t, start, own, epochs, rate)
            sizes = [sum(count) for count in counts]
            w = average(trained, [size / sum(sizes) for size in sizes])
            averaged.append((w, [sum(of_class) for of_class in zip(*counts, strict=True)]))
        last_rounds = [*last_rounds, averaged][-checkpoints:]
        members, counts = zip(*(one for past in last_rounds for one in past), strict=True)
        models = [w for w, _ in averaged]
        models[0] = deepcopy(models[0])
        latent = drawn(t, counts)
        network = learn(world, models[0], network, members, counts, latent, **generated)
    return models


def train(world, t, start, participants, epochs, rate):
    """Return the participants' models, and their samples of each class."""
    trained, counts = [], []
    for client in participants:
        images, labels = world.samples(client)
        batches = world.batches(t, client, len(labels), epochs)
        trained.append(local_training(start, images, labels, batches, rate))
        counts.append([int((labels == y).sum()) for y in range(CLASSES)])
    return trained, counts


def learn(
    world, model, network, members, counts, latent, *, steps, server_rate, tau, each, passes,
    generator_rate, width, c, d, released, first,
):  # fmt: skip
    """Train w in place, and G, which is new if `network` is None; return G.

    `counts` are the n_i^y of each member.
    """
    held = [max(1, sum(own[y] for own in counts)) for y in range(CLASSES)]
    alpha = torch.tensor([[own[y] / held[y] for y in range(CLASSES)] for own in counts])
    if network is None:
        network = image_network(first, latent[0][0].shape[1] + CLASSES, width)
    adam = torch.optim.Adam(network.parameters(), lr=generator_rate)
    taken = 0
    for z, y in latent:
        chosen, given = alpha[:, y], torch.cat([z, one_hot(y, CLASSES).float()], 1)
        network.train()
        for turn in range(passes * (len(members) if released else 1)):
            x = (network(given) - world.mean) / world.deviation
            alike = d * likeness(x, z)
            if released:
                k = turn % len(members)
                loss = one_client(model, members[k], chosen[k], x, y, c) + alike / len(members)
            else:
                loss = alike
                for member, weight in zip(members, chosen, strict=True):
                    right = c * cross_entropy(member(x), y, reduction="none")
                    loss = loss + (weight * (right - kl(member(x), model(x), tau))).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        network.eval()
        x = ((network(given) - world.mean) / world.deviation).detach()
        for _ in range(min(each, steps - taken)):
            far = [kl(member(x).detach(), model(x), tau) for member in members]
            parts = zip(chosen, far, strict=True)
            descend(model, sum(weight * one for weight, one in parts).mean(), server_rate)
            taken += 1
    return network


def one_client(model, client, weight, x, y, c):
    said = client(x)
    away = (model(x) - said.detach()).abs().mean(1)
    return (c * cross_entropy(said, y) * weight).mean() - (weight * away).mean()


def kl(teacher, student, tau):
    p, q = (teacher / tau).log_softmax(1), (student / tau).log_softmax(1)
    return tau**2 * (p.exp() * (p - q)).sum(1)


def likeness(x, z):
    x = x.flatten(1)
    apart = (x[:, None] - x[None]).abs().mean(2)
    return torch.exp(-(apart * ((z[:, None] - z[None]) ** 2).mean(2)).mean())
