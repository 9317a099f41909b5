"""Weights by the odds of discriminators, against densities that are known."""

import torch

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.ensemble_trainers.odds import shares
from fedstage.settings.ensembles import Odds
from fedstage.storage.tensors import save_tensors

ODDS = Odds(name="odds", average="probabilities")


def members(log_odds, samples, classes=3):
    logits = torch.randn(len(samples), log_odds.shape[1], classes)
    return Members(1, 0, logits, tuple(samples), "clients", log_odds)


def test_best_discriminators_give_each_clients_share_of_the_mixture():
    densities = torch.tensor([[0.5, 0.1, 2.0], [0.1, 0.4, 0.0]], dtype=torch.float64)
    of_generator = torch.tensor([0.3, 0.7, 0.01], dtype=torch.float64)
    best = densities / (densities + of_generator)
    found = shares(ODDS, [members((best / (1 - best)).log(), [30, 10])])
    mixture = torch.tensor([30.0, 10.0], dtype=torch.float64)[:, None] * densities
    torch.testing.assert_close(found, mixture / mixture.sum(0))


def test_odds_that_no_exponential_holds_give_weights_that_sum_to_one():
    found = shares(ODDS, [members(torch.tensor([[4000.0, -4000.0], [3990.0, -5000.0]]), [1, 1])])
    torch.testing.assert_close(found.sum(0), torch.ones(2, dtype=torch.float64))
    assert found[0, 1] == 1
    assert 0 < found[1, 0] < 1e-4


def test_members_have_the_odds_of_their_own_clients(tmp_path):
    log_odds = torch.arange(8.0).view(4, 2)
    save_tensors(tmp_path / "odds.safetensors", {"log_odds": log_odds})
    place = {"round": 1, "group": 0, "members": "clients"}
    whose = {"samples": [5, 7], "clients": [3, 1]}
    save_tensors(tmp_path / "l.safetensors", {"logits": torch.zeros(2, 2, 3)}, place | whose)
    (read,) = read_members([tmp_path / "l.safetensors"], tmp_path / "odds.safetensors")
    assert read.log_odds.tolist() == [[6.0, 7.0], [2.0, 3.0]]
    (plain,) = read_members([tmp_path / "l.safetensors"])
    assert plain.log_odds is None
