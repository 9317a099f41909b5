"""Votes weighted by the odds of clients' discriminators (FedGO, Jang et al., ICML 2025).

    a_k(x) = n_k o_k(x) / sum_l n_l o_l(x),     o_k(x) = D_k(x) / (1 - D_k(x))

Client k has trained D_k to tell its images from the images of a generator that all clients have.
The optimal D_k is p_k / (p_k + p_g), so that o_k is proportional to the density p_k of its images,
regardless of the generator's p_g. Hence a_k(x) is the share of client k in the mixture of all data
at x. Here n_k is client k's number of training samples, and sums are over the round's participants.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.errors import FedstageError
from fedstage.settings.ensembles import Odds


def shares(settings: Odds, members: Sequence[Members]) -> torch.Tensor:
    """Return a_k(x) [members, n].

    Raises
    ------
    FedstageError
        If the members lack the odds of their clients.
    """
    terms = []
    for part in members:
        if part.log_odds is None:
            raise FedstageError("ensemble = odds: only teaches, on images that have odds")
        samples = torch.tensor(part.samples, dtype=torch.float64, device=part.log_odds.device)
        terms.append(part.log_odds.double() + samples.log()[:, None])
    return torch.cat(terms).softmax(0)
