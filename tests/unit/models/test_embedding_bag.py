import torch

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import EmbeddingBag

TEXTS = ((3, 9, 3, 40), (7,), (1, 2, 3, 4, 5, 6))


def initialised():
    model = build(EmbeddingBag(name="embedding_bag", vocabulary=50, embedding=6), (8,), 4)
    initialise(model, torch_generator(0, "weights"))
    return model


def padded(length):
    return torch.tensor([[*text, *[0] * (length - len(text))] for text in TEXTS]).int()


@torch.no_grad()
def test_logits_are_of_the_mean_embedding_of_the_tokens_of_each_text():
    model = initialised()
    state = model.state_dict()
    for text, logits in zip(TEXTS, model(padded(8)), strict=True):
        mean = sum(state["embedding.weight"][token] for token in text) / len(text)
        expected = state["linear.weight"] @ mean + state["linear.bias"]
        torch.testing.assert_close(logits, expected)


def test_tokens_outside_of_a_batch_and_padding_have_no_gradient():
    model = initialised()
    model(padded(8)).square().sum().backward()
    (gradient,) = (p.grad for n, p in model.named_parameters() if n == "embedding.weight")
    assert set(gradient.abs().sum(1).nonzero().flatten().tolist()) == {1, 2, 3, 4, 5, 6, 7, 9, 40}
