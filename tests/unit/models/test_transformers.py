import importlib.util
import sys

import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.models.size import state_size
from fedstage.randomness import torch_generator
from fedstage.settings.models import DistilBert

TINY = DistilBert(
    name="distilbert", vocabulary=50, layers=2, heads=2, width=8, hidden=16, positions=12
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers, of the extra `text`, is not installed",
)


def initialised(seed=0):
    model = build(TINY, (10,), 4)
    initialise(model, torch_generator(seed, "weights"))
    return model


def texts():
    tokens = torch.randint(1, 50, (3, 10), generator=torch_generator(1, "tokens"))
    tokens[0, 4:] = 0
    return tokens.to(torch.int32)


def test_without_its_package_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        FedstageError, match=r"needs the package transformers .*extra text"
    ) as caught:
        build(TINY, (10,), 4)
    assert "\n" not in str(caught.value)


@needs_transformers
def test_texts_longer_than_there_are_positions_are_refused():
    with pytest.raises(FedstageError, match=r"model\.positions = 12: the data has texts of 13"):
        build(TINY, (13,), 4)


@needs_transformers
def test_tokens_become_logits_the_same_in_every_training_pass():
    model = initialised().train()
    before = torch.random.get_rng_state()
    first, second = model(texts()), model(texts())
    assert first.shape == (3, 4)
    assert first.isfinite().all()
    assert torch.equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), before)


@needs_transformers
def test_padding_changes_nothing():
    model, tokens = initialised().eval(), texts()
    torch.testing.assert_close(model(tokens[:1, :4]), model(tokens)[:1])


@needs_transformers
def test_the_generator_determines_every_value():
    one, same, other = (initialised(seed).state_dict() for seed in (0, 0, 1))
    assert all(value.isfinite().all() for value in one.values())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if one[name].ndim > 1)


@needs_transformers
def test_gradient_reaches_every_parameter():
    model = initialised()
    torch.nn.functional.cross_entropy(model(texts()), torch.tensor([0, 1, 2])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name


@needs_transformers
@pytest.mark.parametrize("classes", [2, 4])
def test_closed_form_is_the_size_of_the_built_model(classes):
    state = build(TINY, (10,), classes).state_dict()
    assert state_size(TINY, (10,), classes) == sum(value.nbytes for value in state.values())


def test_closed_form_is_the_published_number_of_parameters():
    # distilbert-base-uncased with two classes: 66,955,010 (its config has 66 M without a head).
    settings = DistilBert(name="distilbert")
    assert state_size(settings, (128,), 2) == 4 * 66_955_010
