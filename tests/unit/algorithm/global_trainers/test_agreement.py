"""What a distillation says it did, against plain counts."""

import logging

import numpy as np
import pytest
import torch

from fedstage.algorithm.global_trainers import agreement
from fedstage.algorithm.global_trainers.agreement import public_logits, taught_classes, tell
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.randomness import torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server

N, CLASSES = 230, 5
INFO = {"classes": CLASSES, "mean": [0.2], "std": [0.7], "shape": [CLASSES]}
SERVER = Server.model_validate({"learning_rate": 0.003, "batch_size": 8, "steps": 1})


def drawn(*key):
    return torch.randn(N, CLASSES, generator=torch_generator(*key))


def told(caplog, before, after, lesson, warns=True):
    with caplog.at_level(logging.INFO, "fedstage"):
        place = {"round": 3, "group": 1}
        tell(lesson, before, after, SERVER, INFO, place, warns=warns)
    (record,) = caplog.records
    return record


def test_shares_of_equal_classes_before_and_after(caplog):
    before, after, teacher = drawn("before"), drawn("after"), drawn("teacher")
    after[: N // 2] = teacher[: N // 2]
    record = told(caplog, before, after, Taught(drawn("samples"), teacher))
    was, now, right = (part.numpy().argmax(1) for part in (before, after, teacher))
    expected = {
        "round": 3, "group": 1, "samples": N, "changed": 100 * np.mean(was != now),
        "agreement_before": 100 * np.mean(was == right), "agreement": 100 * np.mean(now == right),
    }  # fmt: skip
    assert expected["agreement"] > 50 > expected["agreement_before"]
    assert record.distilled == pytest.approx(expected)
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        f"round 3, group 1: distillation changed {np.sum(was != now)} of {N} predictions on public "
        f"samples; student and teacher agree on {expected['agreement']:.2f} %, before on "
        f"{expected['agreement_before']:.2f} %"
    )


@pytest.mark.parametrize(("warns", "changed"), [(True, 0), (True, 1), (False, 0)])
def test_a_student_that_has_hardly_changed_is_warned_of(caplog, warns, changed):
    """One of 230 predictions is more than 0.1 %."""
    before = drawn("before")
    after = 2 * before
    after[:changed] = -after[:changed]
    record = told(caplog, before, after, Taught(drawn("samples"), before), warns)
    warned = record.levelno == logging.WARNING
    assert warned == ("learning_rate = 0.003 may be too low" in record.getMessage())
    assert warned == (warns and not changed)


def test_classes_by_the_rule_of_transfers():
    odds = drawn("targets")
    classes = odds.argmax(1)
    labelled = torch.cat([classes[:, None].float(), -odds], dim=1)
    further = torch.cat([classes[:, None].float(), drawn("v")[:, :1], -odds], dim=1)
    for targets in (odds, odds.softmax(1), classes, labelled, further):
        assert torch.equal(taught_classes(targets, CLASSES), classes)
    assert taught_classes(odds[:, :-1], CLASSES) is None
    assert taught_classes(odds[..., None], CLASSES) is None


def test_targets_that_tell_no_class_leave_what_has_changed(caplog):
    lesson = Taught(drawn("samples"), drawn("targets")[:, :2])
    record = told(caplog, drawn("before"), drawn("after"), lesson)
    assert record.distilled.keys() == {"round", "group", "samples", "changed"}


def test_of_many_samples_some_are_compared_evenly_spread(caplog, monkeypatch):
    monkeypatch.setattr(agreement, "COMPARED", 100)
    model, samples, teacher = torch.nn.Linear(CLASSES, CLASSES), drawn("samples"), drawn("teacher")
    chosen = slice(0, N, 3)
    live = Taught(samples, None, live=lambda seen: -seen)
    for lesson, right in (
        (Taught(samples, teacher), teacher.argmax(1)),
        (live, samples.argmin(1)),
    ):
        caplog.clear()
        logits = public_logits(model, lesson, INFO, Numerics(device="cpu"))
        assert logits.shape == (77, CLASSES)
        assert model.training
        record = told(caplog, logits, logits, lesson)
        expected = 100 * (logits.argmax(1) == right[chosen]).double().mean()
        assert record.distilled["samples"] == 77
        assert record.distilled["agreement"] == pytest.approx(float(expected))
