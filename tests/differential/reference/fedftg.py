"""FedFTG (Zhang et al. 2022), and FedFTG as released.

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

import torch
from reference.feddf import average, descend, local_training
from reference.image_network import image_network
from torch.nn.functional import cross_entropy, one_hot


def fedftg(
    world, *, rounds, epochs, rate, steps, server_rate, tau, each, passes, generator_rate,
    width, c, d, released, first, drawn,
):  # fmt: skip
    """Return w and G; `first` are G's first weights, `drawn` gives the z and y of a round."""
    model, network, classes = world.network(), None, 10
    for t in range(1, rounds + 1):
        trained, counts = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
            counts.append([int((labels == y).sum()) for y in range(classes)])
        sizes = [sum(own) for own in counts]
        model = average(trained, [size / sum(sizes) for size in sizes])
        held = [max(1, sum(own[y] for own in counts)) for y in range(classes)]
        alpha = torch.tensor([[own[y] / held[y] for y in range(classes)] for own in counts])
        latent = drawn(t, counts)
        if network is None:
            network = image_network(first, latent[0][0].shape[1] + classes, width)
        adam = torch.optim.Adam(network.parameters(), lr=generator_rate)
        taken = 0
        for z, y in latent:
            chosen, given = alpha[:, y], torch.cat([z, one_hot(y, classes).float()], 1)
            network.train()
            for turn in range(passes * (len(trained) if released else 1)):
                x = (network(given) - world.mean) / world.deviation
                alike = d * likeness(x, z)
                if released:
                    k = turn % len(trained)
                    loss = one_client(model, trained[k], chosen[k], x, y, c) + alike / len(trained)
                else:
                    loss = alike
                    for client, weight in zip(trained, chosen, strict=True):
                        right = c * cross_entropy(client(x), y, reduction="none")
                        loss = loss + (weight * (right - kl(client(x), model(x), tau))).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
            network.eval()
            x = ((network(given) - world.mean) / world.deviation).detach()
            for _ in range(min(each, steps - taken)):
                far = [kl(client(x).detach(), model(x), tau) for client in trained]
                parts = zip(chosen, far, strict=True)
                descend(model, sum(weight * one for weight, one in parts).mean(), server_rate)
                taken += 1
    return model, network


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
