"""What servers do beside plain distillation: weight averages, early stopping, drop-worst."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.ensemble_trainers import Members
from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.drop_worst import Fused, average_of_kept, fused, keep
from fedstage.algorithm.global_trainers.kept_weights import early_stopping, weight_average
from fedstage.algorithm.global_trainers.student import take
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.aggregation import Aggregation
from fedstage.settings.models import CnnSmall
from fedstage.settings.server import EarlyStopping, Server, WeightAverage
from fedstage.training.batches import public_batches
from fedstage.training.images import normalise
from fedstage.training.loop import train
from fedstage.training.passes import compute_logits

INFO = {"mean": [0.4], "std": [0.3]}
CLASSES, PUBLIC, STEPS = 4, 30, 12


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


def images(n=PUBLIC, key="images"):
    generator = torch_generator(key)
    return torch.randint(0, 256, (n, 1, 8, 8), generator=generator, dtype=torch.uint8)


def cnn(key=0):
    model = build(CnnSmall(name="cnn_small", width=2, hidden=6, norm="batch"), (1, 8, 8), CLASSES)
    initialise(model, torch_generator(key, "weights"))
    return model


def server(**changes):
    settings = {"learning_rate": 0.2, "batch_size": 10, "steps": STEPS, "momentum": 0.9}
    return Server.model_validate(settings | changes)


def teacher():
    return 4 * torch.randn(PUBLIC, CLASSES, generator=torch_generator("teacher"))


def batches(steps):
    return public_batches(PUBLIC, 10, STEPS, torch_generator("batches"))[:steps]


def taught(model, steps=STEPS, after_step=None):
    chosen = server()
    outcome = train(
        model, images(), teacher(), batches(steps), chosen, distillation_loss(chosen), INFO,
        torch_generator("augmentation"), after_step=after_step,
    )  # fmt: skip
    return model, outcome


def states_after_each_step():
    """Train anew to each length: nothing but the loop is asked."""
    return [taught(cnn(), steps)[0].state_dict() for steps in range(1, STEPS + 1)]


# --- weight averages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "every", "counted"),
    [(0, 1, range(1, 13)), (0, 5, [5, 10]), (4, 3, [7, 10]), (2, 5, [7, 12]), (11, 1, [12])],
)
def test_weight_average_is_the_plain_mean_of_what_training_passes(start, every, counted):
    model = cnn()
    after_step, averages = weight_average(model, WeightAverage(start=start, every=every))
    taught(model, after_step=after_step)
    last = copy.deepcopy(model.state_dict())
    take(model, averages, images(), INFO)
    passed = states_after_each_step()
    for name, parameter in model.named_parameters():
        plain = sum(passed[step - 1][name].double() for step in counted) / len(counted)
        assert torch.allclose(parameter.double(), plain, atol=1e-6), name
        assert len(counted) == 1 or not torch.equal(parameter, last[name])


def test_statistics_of_an_average_are_those_of_its_own_features():
    model = cnn()
    after_step, averages = weight_average(model, WeightAverage(every=2))
    taught(model, after_step=after_step)
    take(model, averages, images(), INFO)
    first = next(part for part in model.modules() if isinstance(part, nn.Conv2d))
    norm = next(part for part in model.modules() if isinstance(part, nn.BatchNorm2d))
    with torch.no_grad():
        features = first(normalise(images(), INFO)).transpose(0, 1).flatten(1)
    assert torch.allclose(norm.running_mean, features.mean(1), atol=1e-5)
    assert torch.allclose(norm.running_var, features.var(1), rtol=1e-4)


# --- early stopping -------------------------------------------------------------------------------

VALIDATION = 25


def validation():
    generator = torch_generator("labels")
    return images(VALIDATION, "own"), torch.randint(0, CLASSES, (VALIDATION,), generator=generator)


def accuracies():
    """Score fresh copies after each length of training."""
    pictures, labels = validation()
    scores = []
    for state in states_after_each_step():
        model = cnn(1)
        model.load_state_dict(state)
        scores.append(int((compute_logits(model, pictures, INFO).argmax(1) == labels).sum()))
    return scores


def slow_stopping(scores, every, patience):
    """Return the last and the best step."""
    best, best_step = -1, 0
    for step in range(1, STEPS + 1):
        if step % every == 0 or step == STEPS:
            if scores[step - 1] > best:
                best, best_step = scores[step - 1], step
            if step - best_step >= patience:
                return step, best_step
    return STEPS, best_step


@pytest.mark.parametrize("every", [1, 2, 5, 50])
@pytest.mark.parametrize("patience", [1, 2, 4, 100])
def test_early_stopping_by_a_plain_loop(every, patience):
    last, best_step = slow_stopping(accuracies(), every, patience)
    model = cnn()
    settings = EarlyStopping(every=every, patience=patience)
    after_step, best = early_stopping(model, settings, STEPS, validation(), INFO)
    _, outcome = taught(model, after_step=after_step)
    assert (outcome.steps, best.step, best.right) == (last, best_step, accuracies()[best_step - 1])
    for name, value in states_after_each_step()[best_step - 1].items():
        assert torch.equal(best.weights[name], value), name


def test_the_cases_above_stop_early_and_late():
    ends = {slow_stopping(accuracies(), every, patience) for every in (1, 2) for patience in (1, 4)}
    assert len({last for last, _ in ends}) > 1
    assert len({best for _, best in ends}) > 1


# --- drop-worst -----------------------------------------------------------------------------------


def slow_rule(accuracies, classes, rule):
    """Return who is averaged and who teaches, as NumPy arrays of indices would have it."""
    values = np.array(accuracies)
    everyone = np.ones(len(values), bool)
    if rule == "as_published":
        kept = values > 1 / classes
        return (kept, kept) if kept.any() else (everyone, everyone)
    kept = values >= 1.2 / classes
    if not kept.any():
        return everyone, everyone
    if not kept.all():
        return kept, kept
    others = np.delete(values, values.argmax())
    if len(others) == 0:
        return everyone, everyone
    return everyone, values >= others.mean() - 1.5 * others.std()


@pytest.mark.parametrize("rule", ["as_published", "as_released"])
@pytest.mark.parametrize("lowest", [0.0, 0.09, 0.3])
@pytest.mark.parametrize("clients", [1, 2, 3, 8])
def test_drop_worst_by_a_plain_rule(rule, lowest, clients):
    generator = np.random.default_rng(clients)
    for _ in range(200):
        values = (lowest + (0.6 - lowest) * generator.random(clients) ** 3).tolist()
        ours, expected = keep(values, 10, rule), slow_rule(values, 10, rule)
        assert [list(flags) for flags in expected] == [list(flags) for flags in ours], values


def test_exactly_chance_is_dropped_as_published():
    assert keep([0.1, 0.11, 36 / 360], 10, "as_published")[0] == [False, True, False]
    assert keep([0.12, 0.119], 10, "as_released")[0] == [True, False]


def test_where_nobody_would_be_left_all_stay():
    for rule in ("as_published", "as_released"):
        assert keep([0.05, 0.1], 10, rule) == ([True, True], [True, True])


LABELS = torch.tensor([0, 1, 2, 3])
RIGHT = {0: [3, 0], 1: [2]}  # of two groups: how many each client gets right


def judged():
    def client(count):
        answers = torch.where(torch.arange(4) < count, LABELS, (LABELS + 1) % 4)
        return nn.functional.one_hot(answers, 4).float()

    return [
        Members(2, group, torch.stack([client(n) for n in counts]), (5,) * len(counts), "clients")
        for group, counts in RIGHT.items()
    ]


def test_clients_are_judged_over_all_groups():
    kept = fused(judged()[::-1], LABELS, "as_published")
    assert kept.averaged == kept.teaching == {0: [True, False], 1: [True]}
    assert kept.dropped == 1


def test_those_who_teach_keep_their_logits_and_samples():
    said = [
        Members(2, 0, torch.arange(6.0).view(2, 1, 3), (7, 9), "clients"),
        Members(2, 1, torch.ones(1, 1, 3), (4,), "clients"),
    ]
    kept = Fused({}, {0: [False, True], 1: [True]})
    left = kept.members(said)
    assert [part.samples for part in left] == [(9,), (4,)]
    assert left[0].logits.tolist() == [[[3.0, 4.0, 5.0]]]
    assert torch.equal(left[1].logits, said[1].logits)
    assert kept.models(["a", "b", "c"]) == ["b", "c"]


def updates():
    found = []
    for participant, samples in enumerate([10, 30, 50]):
        weights = {"w": torch.full((2,), float(participant))}
        notes = {"participant": participant, "samples": samples} | (
            {"diverged_at": 1} if participant == 1 else {}
        )
        found.append(Update(None, {} if participant == 1 else weights, {}, notes))
    return found


@pytest.mark.parametrize(
    ("flags", "weights", "expected"),
    [
        ([True, True], "samples", -1.0),
        ([False, False], "samples", -1.0),
        ([False, True], "samples", 2.0),
        ([True, False], "uniform", 0.0),
    ],
)
def test_the_start_is_averaged_anew_of_who_is_kept(flags, weights, expected):
    aggregated = {"w": torch.full((2,), -1.0)}
    ours = average_of_kept(aggregated, updates(), flags, Aggregation(weights=weights))
    assert ours["w"].tolist() == [expected] * 2


def test_the_new_average_weighs_as_the_aggregation_does():
    three = [update for update in updates() if not update.diverged]
    four = [
        *three,
        Update(None, {"w": torch.full((2,), 9.0)}, {}, {"participant": 3, "samples": 1}),
    ]
    by_samples, uniform = (
        average_of_kept({}, four, [True, True, False], Aggregation(weights=weights))["w"]
        for weights in ("samples", "uniform")
    )
    assert by_samples.tolist() == pytest.approx([2 * 50 / 60] * 2)
    assert uniform.tolist() == [1.0, 1.0]
    expected = average_weights([update.weights for update in three], [10, 50])
    assert torch.equal(by_samples, expected["w"])


# --- sharpening -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("power", "tau"), [(2.0, 1.0), (2.0, 4.0), (0.5, 1.0)])
def test_sharpening_raises_the_teachers_probabilities_to_a_power(power, tau):
    student = 3 * torch.randn(7, CLASSES, generator=torch_generator("student"))
    logits = teacher()[:7]
    chosen = server(sharpening=power, temperature=tau, tau_squared=False)
    ours = float(distillation_loss(chosen)(student, logits))
    p = (logits.double().softmax(1) ** power).numpy() ** (1 / tau)
    p /= p.sum(1, keepdims=True)
    q = (student.double() / tau).softmax(1).numpy()
    assert ours == pytest.approx((p * np.log(p / q)).sum(1).mean(), rel=1e-5)
