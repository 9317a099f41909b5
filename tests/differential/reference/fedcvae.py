"""FedCVAE-Ens and FedCVAE-KD (Heinbaugh, Luz-Ricca and Shao 2023).

each client i, with Adam on encoder q and decoder p_i:
    m, s = q(x);  z = m + s e,  e normal
    L = rec(x, p_i(z, y)) + beta KL( N(m, s^2), N(0, 1) )
    rec: cross entropy of grey pixels, or squared error of coloured ones
the server, M images, n_i / n of client i:   y ~ labels of i,  z normal, cut off at +-3
    Ens:  x = p_i(z, y)
    KD:   p descends rec(p_i(z, y), p(z, y));  x = p(z, y) with y of all classes
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import one_hot

HIDDEN = 500


class Encoder(nn.Module):
    """For 16x16 pixels: smaller ones have zeros below and beside."""

    def __init__(self, channels, latent, width):
        super().__init__()
        maps = [channels, width, width, 2 * width, 2 * width]
        layers = []
        for before, after in pairwise(maps):
            layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after)]
            layers += [nn.ReLU()]
        ends = [nn.Linear(2 * width, HIDDEN), nn.Linear(HIDDEN, 2 * latent)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), *ends)
        self.latent = latent

    def forward(self, x):
        whole = torch.zeros(*x.shape[:2], 16, 16)
        whole[:, :, : x.shape[2], : x.shape[3]] = x
        seen = self.layers(whole)
        return seen[:, : self.latent], seen[:, self.latent :]


class Decoder(nn.Module):
    """To the logits of 8x8 pixels, of 16x16."""

    def __init__(self, channels, classes, latent, width):
        super().__init__()
        self.linear, self.classes = nn.Linear(latent + classes, 2 * width), classes
        maps = [2 * width, 2 * width, width, width]
        layers = [nn.Unflatten(1, (2 * width, 1, 1)), nn.ReLU()]
        for before, after in pairwise(maps):
            layers += [nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False)]
            layers += [nn.BatchNorm2d(after, eps=1e-3), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(width, channels, 4, 2, 1))

    def forward(self, z, y):
        seen = torch.cat([z, one_hot(y, self.classes).float()], 1)
        return self.layers(self.linear(seen))[:, :, :8, :8]


def filled(network, weights):
    names = list(network.state_dict())
    network.load_state_dict(dict(zip(names, weights, strict=True)))
    return network.train()


def client(world, x, y, *, beta, rate):
    """Return the decoder of a client's pixels x [n, C, 8, 8] in [0, 1] and labels y."""
    encoder = filled(Encoder(x.shape[1], world.latent, world.width), world.encoder())
    decoder = filled(new_decoder(world, x.shape[1]), world.decoder())
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=rate)
    for batch in world.batches(len(x)):
        mean, log_variance = encoder(x[batch])
        z = mean + (0.5 * log_variance).exp() * world.noise(len(batch))
        kl = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(batch)
        loss = rec(x[batch], decoder(z, y[batch])) + beta * kl
        adam.zero_grad()
        loss.backward()
        adam.step()
    return decoder.eval()


def new_decoder(world, channels):
    return Decoder(channels, world.classes, world.latent, world.width)


def rec(x, logits):
    p = logits.sigmoid()
    if x.shape[1] == 1:
        return -(x * p.log() + (1 - x) * (1 - p).log()).sum() / len(x)
    return ((x - p) ** 2).sum() / len(x)


@torch.no_grad()
def drawn(decoder, z, y):
    """Return pixels in [0, 1]."""
    return decoder(z, y).sigmoid()


def distilled(world, decoders, starts, *, rate):
    """Return the decoder that learns from others; `starts` are the z and y of each."""
    parts = [drawn(decoder, z, y) for decoder, (z, y) in zip(decoders, starts, strict=True)]
    x, z, y = torch.cat(parts), *(torch.cat(one) for one in zip(*starts, strict=True))
    decoder = filled(new_decoder(world, x.shape[1]), world.decoder())
    adam = torch.optim.Adam(decoder.parameters(), lr=rate)
    for batch in world.batches(len(x)):
        loss = rec(x[batch], decoder(z[batch], y[batch]))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return decoder.eval()
