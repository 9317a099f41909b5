"""Measures of forgetting, against cases counted by hand."""

import pytest
import torch

from fedstage.algorithm.measures.forgetting import (
    Venn,
    forgetting,
    venn,
)
from fedstage.stages.scores import overlap


def right(text):
    """Read ``110`` as: about the first two samples."""
    return torch.tensor([digit == "1" for digit in text])


def test_what_is_lost_gained_and_retained():
    assert venn(right("11110000"), right("00011110")) == Venn(lost=3, gained=3, retained=1)
    assert venn(right("1110"), right("0000")) == (3, 0, 0)
    assert venn(right("0000"), right("0111")) == (0, 3, 0)
    assert venn(right("1010"), right("1010")) == (0, 0, 2)


def test_the_overlap_is_the_share_of_the_union_that_both_have_learnt():
    assert overlap(right("1100"), right("0110")) == pytest.approx(100 / 3)
    assert overlap(right("1010"), right("1010")) == 100
    assert overlap(right("1000"), right("0100")) == overlap(right("0000"), right("1000")) == 0
    assert overlap(right("0000"), right("0000")) is None


def test_the_forget_score_is_the_accuracy_on_current_minus_that_on_previous_samples():
    assert forgetting(now=right("1110"), before=right("11100"), after=right("01001")) == {
        "samples": 4, "current": 75.0, "previous": 40.0, "forget_score": 35.0,
        "lost": 2, "gained": 1, "retained": 1,
    }  # fmt: skip


def test_without_participants_nothing_is_known():
    columns = forgetting(now=None, before=right("10"), after=right("10"))
    assert columns["samples"] == 0
    assert {columns[name] for name in columns if name != "samples"} == {None}
