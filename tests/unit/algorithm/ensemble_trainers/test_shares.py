"""Weights of members: what an ensemble of a user's may return."""

import pytest
import torch

from fedstage.algorithm.ensemble_trainers import Members, clients, teacher_logits
from fedstage.errors import FedstageError
from fedstage.settings.ensembles import Clients

LOGITS = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
MEMBERS = [Members(1, 0, LOGITS, (1, 2, 3), "clients")]


@pytest.fixture
def taught(monkeypatch):
    """A function that returns the teacher's logits, given what `shares` returns."""

    def of(shares, average="logits"):
        monkeypatch.setattr(clients, "shares", lambda settings, members: shares)
        return teacher_logits(Clients(name="clients", average=average), MEMBERS)

    return of


THIRDS = torch.full((3,), 1 / 3, dtype=torch.float64)
FAULTS = [
    ([1 / 3] * 3, "returns list: no tensor"),
    (THIRDS[:2], "has the shape [2]: must be [3], of 3 members, or [3, 5] with 5 samples"),
    (torch.full((5, 3), 1 / 3), "has the shape [5, 3]: must be [3], of 3 members, or [3, 5] with"),
    (torch.tensor([1, 0, 0]), "has the type int64: must be float64"),
    (torch.tensor([0.5, 0.5, torch.nan]), "has numbers that are not finite"),
    (torch.tensor([0.5, 0.5, torch.inf]), "has numbers that are not finite"),
    (torch.tensor([1.0, 2.0, 3.0]), "has a sum over members of 6: must be 1"),
    (torch.eye(3, 5), "has a sum over members of 0: must be 1"),
    (THIRDS * 1.0001, "has a sum over members of 1.0001: must be 1"),
]


@pytest.mark.parametrize(("shares", "told"), FAULTS, ids=range(len(FAULTS)))
def test_shares_of_another_shape_type_or_sum_are_refused_in_one_line(taught, shares, told):
    with pytest.raises(FedstageError) as raised:
        taught(shares)
    assert str(raised.value).startswith(f"ensemble = clients: shares {told}")
    assert "\n" not in str(raised.value)


def test_negative_shares_average_logits_only(taught):
    shares = torch.tensor([1.5, -0.5, 0.0])
    torch.testing.assert_close(taught(shares), 1.5 * LOGITS[0] - 0.5 * LOGITS[1])
    with pytest.raises(FedstageError, match=r"shares has -0.5: must not be negative where"):
        taught(shares, "probabilities")
