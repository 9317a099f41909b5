import pytest
import torch

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import Lstm

TINY = Lstm(name="lstm", vocabulary=50, embedding=6, hidden=8)


def initialised(settings=TINY, seed=0):
    model = build(settings, (10,), 4)
    initialise(model, torch_generator(seed, "weights"))
    return model


def texts():
    """Return texts of 4, 7 and 2 tokens, each longer limit of 10 padded."""
    tokens = torch.randint(1, 50, (3, 10), generator=torch_generator(1, "tokens"))
    for text, length in enumerate((4, 7, 2)):
        tokens[text, length:] = 0
    return tokens.to(torch.int32)


def gates(x, h, c, weights):
    """One step of a layer by Hochreiter and Schmidhuber, with torch's order of gates."""
    w_in, w_state, b_in, b_state = weights
    i, f, g, o = (w_in @ x + b_in + w_state @ h + b_state).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@torch.no_grad()
def test_logits_are_of_the_last_state_of_each_text():
    model = initialised()
    state = model.state_dict()
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    for text, logits in zip(texts(), model(texts()), strict=True):
        inputs = list(state["embedding.weight"][text[text > 0].long()])
        for layer in range(2):
            h = c = torch.zeros(8)
            weights = [state[f"lstm.{part}_l{layer}"] for part in parts]
            for place, x in enumerate(inputs):
                h, c = gates(x, h, c, weights)
                inputs[place] = h
        expected = state["linear.weight"] @ inputs[-1] + state["linear.bias"]
        torch.testing.assert_close(logits, expected)


def test_layers_are_uniform_by_their_states():
    model = initialised(Lstm(name="lstm", vocabulary=50, hidden=64))
    for name, value in model.lstm.named_parameters():
        assert 0.9 / 8 < value.abs().max().item() <= 1 / 8, name
        assert value.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.1), name
