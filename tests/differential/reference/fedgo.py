"""FedGO (Jang et al. 2025): FedDF whose clients' votes weigh by the odds of discriminators.

before round 1, on the server, for each batch x of public images
    Adam on D:  - log D(x) - log(1 - D(G(z)));     Adam on G:  - log D(G(z))
each client k, for each batch x of its own images, with G's running statistics
    Adam on D_k:  - log D_k(x) - log(1 - D_k(G(z)))
for each round t
    each participant i trains from w to w_i;   w <- sum_i (n_i / n) w_i
    a_i(d) = n_i o_i(d) / sum_j n_j o_j(d),   o_i = D_i / (1 - D_i)
    for each of N batches of public images d
        w <- w - eta grad tau^2 KL( sigma( log( sum_i a_i sigma(f(d; w_i)) ) / tau ), ... )
"""

import torch
from reference.feddf import average, distil, local_training
from reference.image_network import image_network
from torch import nn


def fedgo(
    world, *, rounds, epochs, rate, steps, server_rate, tau, latent, width, judge_width,
    generator_rate, judge_rate, beta1, first, drawn,
):  # fmt: skip
    """Return the student of the last round, G, and the log odds [clients, n] of public images.

    `first` are the weights that G, its D and clients' D_k start from, `drawn` gives the batches and
    z of the server (None) or of a client.
    """
    generator = image_network(first["generator"], latent, width)
    judge = judging_network(first["judge"], width)
    of_g, of_d = (adam(model, generator_rate, beta1) for model in (generator, judge))
    for batch, z in drawn(None, len(world.public)):
        made = (generator(z) - world.mean) / world.deviation
        descend(of_d, told_apart(judge(world.public[batch]), judge(made.detach())))
        descend(of_g, -torch.log(torch.sigmoid(judge(made))).mean())
    generator.eval()
    odds = []
    for client in range(world.clients):
        images, _ = world.samples(client)
        judge = judging_network(first["clients"], judge_width)
        optimiser = adam(judge, judge_rate, beta1)
        for batch, z in drawn(client, len(images)):
            with torch.no_grad():
                made = (generator(z) - world.mean) / world.deviation
            descend(optimiser, told_apart(judge(images[batch]), judge(made)))
        with torch.no_grad():
            real = torch.sigmoid(judge(world.public).double()).squeeze(1)
        odds.append(real / (1 - real))
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes, theirs = [], [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
            sizes.append(len(labels))
            theirs.append(len(labels) * odds[client])
        model = average(trained, [size / sum(sizes) for size in sizes])
        shares = torch.stack(theirs) / sum(theirs)
        with torch.no_grad():
            said = torch.stack([one(world.public).double().softmax(1) for one in trained])
        teacher = (shares[:, :, None] * said).sum(0).log().float()
        distil(model, world.public, teacher, world.public_batches(steps), server_rate, tau)
    return model, generator, torch.stack(odds).log()


def told_apart(real, made):
    return -torch.log(torch.sigmoid(real)).mean() - torch.log(1 - torch.sigmoid(made)).mean()


def judging_network(weights, width):
    """Return images [n, 1, 8, 8] -> log odds [n, 1], of weights in the order of layers."""
    network = nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(4 * width, 1),
    )
    network.load_state_dict(dict(zip(network.state_dict(), weights, strict=True)))
    return network


def adam(model, rate, beta1):
    return torch.optim.Adam(model.parameters(), lr=rate, betas=(beta1, 0.999))


def descend(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
