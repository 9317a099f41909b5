"""DFRD (Luo et al. 2023), with FedFTG's distance of images, rates and steps.

for each round t
    each participant i trains from w to w_i, with n_i^y samples of class y
    w <- sum_i (n_i / n) w_i,     tau_i^y = n_i^y / sum_j n_j^y,     s(x) = sum_i tau_i^y f(x; w_i)
    for each batch z, y
        Adam on G, with w fixed:   mean CE(s(x), y) - beta mean e tau^2 KL(s(x), f(x; w)) + d L_dis
            e = 1 if argmax s(x) = y and argmax f(x; w) != y
        several times:   w <- w - eta grad mean ( tau^2 KL(s(x), f(x; w)) of x = G(z, y)
                         + alpha tau^2 KL(s(x), f(x; w)) of x = V(z, y), from round 2 on )
    V <- G in round 1, then decay V + (1 - decay) G
"""

from copy import deepcopy

import torch
from reference.feddf import average, descend
from reference.fedftg import kl, likeness, train
from reference.image_network import image_network
from reference.network import CLASSES
from torch.nn.functional import cross_entropy, one_hot


def dfrd(
    world, *, rounds, epochs, rate, drawn, first, steps, server_rate, tau, each, passes,
    generator_rate, width, c, d, beta, alpha, decay,
):  # fmt: skip
    """Return w; `drawn` gives the z and y of a round, `first` has G's first weights."""
    model, network, older = world.network(), None, None
    for t in range(1, rounds + 1):
        members, counts = train(world, t, model, world.participants(t), epochs, rate)
        sizes = [sum(own) for own in counts]
        model = average(members, [size / sum(sizes) for size in sizes])
        latent = drawn(t, counts)
        if network is None:
            network = image_network(first, latent[0][0].shape[1] + CLASSES, width)
        adam = torch.optim.Adam(network.parameters(), lr=generator_rate)
        taken = 0
        for z, y in latent:
            given = torch.cat([z, one_hot(y, CLASSES).float()], 1)

            def said(x, y=y, members=members, counts=counts):
                held = torch.tensor(counts).float()[:, y]
                parts = zip(held / held.sum(0), members, strict=True)
                return sum(share[:, None] * w(x) for share, w in parts)

            network.train()
            for _ in range(passes):
                x = (network(given) - world.mean) / world.deviation
                s, f = said(x), model(x)
                e = ((s.argmax(1) == y) & (f.argmax(1) != y)).float()
                loss = c * cross_entropy(s, y) - beta * (e * kl(s, f, tau)).mean()
                adam.zero_grad()
                (loss + d * likeness(x, z)).backward()
                adam.step()
            network.eval()
            lessons = []
            for weight, made in ((1, network), (alpha, older)):
                if made is not None:
                    x = ((made(given) - world.mean) / world.deviation).detach()
                    lessons.append((weight, x, said(x).detach()))
            for _ in range(min(each, steps - taken)):
                descend(model, sum(a * kl(s, model(x), tau).mean() for a, x, s in lessons),
                        server_rate)  # fmt: skip
                taken += 1
        older = moved(older, network, decay)
    return model


def moved(older, network, decay):
    average = deepcopy(network)
    if older is not None:
        for name, value in average.state_dict().items():
            before = older.state_dict()[name]
            mean = decay * before.double() + (1 - decay) * value.double()
            value.copy_(mean if value.is_floating_point() else mean.round())
    return average.eval()
