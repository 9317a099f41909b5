"""A round of secure aggregation in memory, with clients that drop out before a step."""

import numpy as np

from fedstage.algorithm.secure.masks import masked, public_key
from fedstage.algorithm.secure.shares import Address, Shares, seal, split, unseal
from fedstage.algorithm.secure.steps import check_answers, reveal, unmasked_sum
from fedstage.randomness import secret

STEPS = ("advertise", "share", "masked input", "unmask")


def private(purpose, client):
    return secret(0, "test", 1, client, purpose)


def answering(dropped, step):
    """The clients that answer a step; `dropped` has the first step that each does not answer."""
    return [u for u, last in enumerate(dropped) if last > step]


def masked_vectors(values, dropped, clients):
    public = {u: public_key(private("mask key", u)) for u in clients}
    return {
        u: masked(values[u], u, private("seed", u), private("mask key", u), public)
        for u in answering(dropped, 2)
    }


def run(values, dropped, threshold, order=lambda clients: clients):
    """Return the sum of the integers `values` [n, P] that the server computes."""
    answered = [order(answering(dropped, step)) for step in range(4)]
    for step, clients in zip(STEPS, answered, strict=True):
        check_answers(step, "round 1, group 0", len(clients), threshold)
    advertised, shared, sent, last = answered
    channel = {u: public_key(private("channel key", u)) for u in advertised}
    public = {u: public_key(private("mask key", u)) for u in shared}
    messages = {}
    for u in shared:
        parts = [
            split(private(what, u), threshold, advertised, private(f"shares of {what}", u))
            for what in ("seed", "mask key")
        ]
        for v in advertised:
            shares = Shares(*(part[v] for part in parts))
            address = Address(1, 0, u, v)
            messages[u, v] = seal(shares, address, private("channel key", u), channel[v])
    vectors = masked_vectors(values, dropped, shared)
    revealed = {}
    for v in last:
        held = {
            u: unseal(messages[u, v], Address(1, 0, u, v), private("channel key", v), channel[u])
            for u in shared
        }
        revealed[v] = reveal(held, sent)
    return unmasked_sum({u: vectors[u] for u in sent}, public, revealed, threshold)


def draw(clients, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2**32, size=(clients, length), dtype=np.uint32)
