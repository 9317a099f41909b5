"""DistilBERT and BERT, whose layers are those of the package `transformers`."""

import hashlib
import importlib.util

import pytest
import torch
from safetensors.torch import save_file

from fedstage.models.heads import body_of
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.models.pretrained import LAYOUTS, take_weights
from fedstage.randomness import torch_generator
from fedstage.settings.models import Bert, DistilBert, Head, Pretrained

SIZE = {"vocabulary": 50, "layers": 2, "heads": 2, "width": 8, "hidden": 16, "positions": 12}
TINY = [DistilBert(name="distilbert", **SIZE), Bert(name="bert", **SIZE)]
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers, of the extra `text`, is not installed",
)
each = pytest.mark.parametrize("settings", TINY, ids=lambda one: one.name)


def initialised(settings, seed=0):
    model = build(settings, (10,), 4)
    initialise(model, torch_generator(seed, "weights"))
    return model


def texts():
    tokens = torch.randint(1, 50, (3, 10), generator=torch_generator(1, "tokens"))
    tokens[0, 4:] = 0
    return tokens.to(torch.int32)


@needs_transformers
@each
def test_tokens_become_logits_the_same_in_every_pass_without_dropout(settings):
    """As it always was before dropout was a setting."""
    model = initialised(settings.model_copy(update={"dropout": 0.0})).train()
    before = torch.random.get_rng_state()
    first, second = model(texts()), model(texts())
    assert first.shape == (3, 4)
    assert first.isfinite().all()
    assert torch.equal(first, second)
    assert torch.equal(first, model.eval()(texts()))
    assert torch.equal(torch.random.get_rng_state(), before)


@needs_transformers
@each
def test_dropout_is_as_published_by_default(settings):
    """Of Hugging Face's models, whose class has the published values as its defaults."""
    network = initialised(settings).network
    published = type(network.config)()
    names = ["hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"]
    names = {"bert": names, "distilbert": ["dropout", "attention_dropout", "seq_classif_dropout"]}
    for name in names[settings.name]:
        assert getattr(network.config, name) == getattr(published, name), name


@needs_transformers
@each
def test_padding_changes_nothing(settings):
    model, tokens = initialised(settings).eval(), texts()
    torch.testing.assert_close(model(tokens[:1, :4]), model(tokens)[:1])


@pytest.mark.parametrize(
    ("settings", "parameters"),
    [
        # distilbert-base-uncased (its config has 66 M without a head); the models of Turc et al.
        # 2019 have 4.4 M and 11.2 M (4,385,920 and 11,170,560), bert-base-uncased 109,482,240.
        (DistilBert(name="distilbert"), 66_955_010),
        (Bert(name="bert"), 4_385_920 + 2 * 129),
        (Bert(name="bert", layers=4, heads=4, width=256, hidden=1024), 11_170_560 + 2 * 257),
        (Bert(name="bert", layers=12, heads=12, width=768, hidden=3072), 109_482_240 + 2 * 769),
    ],
    ids=["distilbert", "tiny", "mini", "base"],
)
@needs_transformers
def test_parameters_are_as_many_as_published(settings, parameters):
    with torch.device("meta"):
        model = build(settings, (128,), 2)
    assert sum(value.numel() for value in model.parameters()) == parameters


def published(settings, path, renamed=()):
    """Write a file as one of the masked-language model, of ones, and return the settings of it."""
    layout = LAYOUTS[settings.name]
    state = {
        name.removeprefix(layout.prefix): torch.ones_like(value)
        for name, value in build(settings, (10,), 4).state_dict().items()
        if not name.removeprefix(layout.prefix).startswith(layout.classifier)
    }
    for old, new in renamed:
        state = {name.replace(old, new): value for name, value in state.items()}
    state |= {f"{name}weight": torch.ones(3) for name in layout.extra}
    save_file(state, path)
    return Pretrained(file=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


#: Names of norms in older files of BERT.
OLD = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))


@needs_transformers
@pytest.mark.parametrize("head", [None, Head(hidden=6, width=5)], ids=["plain", "head"])
@pytest.mark.parametrize(
    ("settings", "renamed"), [(TINY[0], ()), (TINY[1], ()), (TINY[1], OLD)], ids=str
)
def test_all_but_the_classifier_start_from_a_published_file(tmp_path, settings, renamed, head):
    weights = published(settings, tmp_path / "weights.safetensors", renamed)
    model = initialised(settings.model_copy(update={"head": head}))
    take_weights(body_of(model), weights, tmp_path, LAYOUTS[settings.name])
    taken = {name for name, value in model.named_parameters() if (value == 1).all()}
    drawn = {name for name, _ in model.named_parameters()} - taken
    assert drawn
    assert all("classifier." in name or name.startswith("head.") for name in drawn)
