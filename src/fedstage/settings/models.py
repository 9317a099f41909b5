"""Architectures of models.

One file because all alternatives of one choice are read next to one another.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    ByName,
    Choice,
    Functions,
    Layers,
    Positive,
    Seed,
    Settings,
    Width,
)
from fedstage.settings.patterns import SHA256
from fedstage.settings.traits import Lacks, Part, Trait

Norm = Literal["batch", "group", "none"]
#: Of residual blocks that change the number of channels: without (A) or with a projection (B).
Shortcut = Literal["A", "B"]


class Head(Settings):
    """Layers that end a model of any architecture, the same in all: x -> z -> logits."""

    hidden: Width = 128
    """Numbers that the architecture gives in place of classes, before a ReLU."""
    width: Width = 128
    """Numbers of the representation z."""
    relu: bool = True
    """Another ReLU ends the representation."""


class Architecture(Choice):
    """An architecture, whose input is one of `samples`: images, features, bags or tokens.

    `smallest` is the least height and width of images; None if any size will do. `compiles`: the
    compiler of `numerics.compile` takes it. `by_sample`: torch.func gives the gradients of single
    samples of a batch. `pools_maps`: layer `pool` takes its last feature maps.
    """

    room: ClassVar[str] = "models.architectures"
    lacks: ClassVar[Lacks] = {"no head": ("which takes none", Trait.HEAD)}
    functions: ClassVar[Functions] = {"network": ("settings", "shape", "classes")}
    samples: ClassVar[tuple[str, ...]] = ("images",)
    smallest: ClassVar[int | None] = None
    compiles: ClassVar[bool] = True
    by_sample: ClassVar[bool] = True
    pools_maps: ClassVar[bool] = False
    more_outputs: Annotated[int, Field(ge=0, le=100_000)] | Literal["features"] = 0
    """Outputs behind one a class, which votes of one shot may read: so many, or the model's
    features, with which one prototype per class is compared.
    """


class Headed(Architecture):
    """An architecture whose last layer can be replaced by a `head`."""

    head: Head | None = None
    """Layers in place of the last one."""


class CnnSmall(Headed):
    """Two convolutions and two linear layers."""

    smallest: ClassVar[int | None] = 4
    name: Literal["cnn_small"]
    width: Width = 16
    """Channels of the first convolution; the second has twice as many."""
    hidden: Width = 64
    """Units of the first linear layer."""
    norm: Norm = "none"
    """Normalisation behind each convolution."""


class Cnn(Headed):
    """3x3 convolutions, each with 2x2 max-pooling, and one linear layer."""

    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["cnn"]
    channels: Annotated[tuple[Width, ...], Field(strict=False, min_length=1, max_length=3)] = (
        16, 32, 64,
    )  # fmt: skip
    """Channels of the convolutions."""
    norm: Norm = "none"
    """Normalisation behind each convolution."""


class LogisticRegression(Architecture):
    """One linear layer on the flattened input."""

    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["logistic_regression"]
    outputs: Literal[1] | None = None
    """1, for two classes: the second's logit, the first's being 0. The cross entropy is then the
    binary cross entropy of the sigmoid.
    """


class Perceptron(Headed):
    """Linear layers on the flattened input, with ReLU between them."""

    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["mlp"]
    hidden: Annotated[tuple[Width, ...], Field(strict=False, min_length=1)] = (64, 64)
    """Units of each layer but the last."""


class ResNet(Headed):
    """CIFAR ResNet of He et al. 2016, with 6n+2 layers."""

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8", "resnet20", "resnet32", "resnet56"]
    norm: Norm = "batch"
    """Normalisation behind each convolution."""
    shortcut: Shortcut = "A"
    """Residual blocks that change the number of channels have a shortcut without (A) or with a
    projection (B).
    """


class Lower(Architecture):
    """A small model that is whole, and whose `body` gives an `Upper` feature maps to go on from.

    The maps have the height and width of the images.
    """

    width: Width = 16
    """Channels of the feature maps."""

    def features(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the features of a sample of this shape."""
        return (self.width, *shape[1:])


class Upper(Architecture):
    """A model that goes on from feature maps, which a `Lower`'s body gives."""

    samples: ClassVar[tuple[str, ...]] = ("feature maps",)
    width: Width = 16
    """Channels of the feature maps."""


class ResNetLower(Lower):
    """The beginning of a CIFAR ResNet, and a linear layer."""

    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_lower"]
    blocks: Annotated[int, Field(ge=0, le=1000)] = 3
    """Residual blocks; with 3 it has 8 layers."""
    norm: Norm = "batch"
    """Normalisation behind each convolution."""


class ResNetUpper(Upper):
    """The rest of a CIFAR ResNet: 3 stages of residual blocks.

    They have `width`, 2 and 4 times `width` channels.
    """

    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_upper"]
    blocks: Layers = 9
    """Residual blocks of a stage; with 9 it has 55 layers."""
    norm: Norm = "batch"
    """Normalisation behind each convolution."""
    shortcut: Shortcut = "A"
    """Residual blocks that change the number of channels have a shortcut without (A) or with a
    projection (B).
    """


class WideResNet(Headed):
    """Wide residual network of Zagoruyko and Komodakis 2016: 16 layers, width factor 2."""

    module: ClassVar[str] = "wide_resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["wrn16_2"]
    norm: Norm = "batch"
    """Normalisation before each convolution."""


class DeepMil(Architecture):
    """Gated attention over the instances of a bag (Ilse et al. 2018), as in FLamby's baseline."""

    samples: ClassVar[tuple[str, ...]] = ("bags",)
    name: Literal["deep_mil"]
    width: Width = 128
    """Dimension of embedded instances and of attention."""
    outputs: Literal[1] | None = 1
    """1, for two classes: the second's logit, the first's being 0."""


class Pretrained(Settings):
    """A file of weights."""

    file: str
    """Path below the data folder."""
    sha256: Annotated[str, Field(pattern=SHA256)]
    """SHA-256 of the file, or its first digits."""


class EfficientNet(Headed):
    """EfficientNet-B0 (Tan and Le 2019) with a linear layer for the classes."""

    module: ClassVar[str] = "efficientnet"
    smallest: ClassVar[int | None] = 32
    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    by_sample: ClassVar[bool] = False
    name: Literal["efficientnet_b0"]
    weights: Pretrained | None = None
    """What all layers but the last start from: a state dict of torchvision's model, in PyTorch's
    format or safetensors.
    """
    norm: ClassVar[str] = "batch"


class ResNetWide(Headed):
    """The ResNet-8 of FENS: three blocks with `width`, 2 and 4 times `width` channels."""

    module: ClassVar[str] = "resnet_wide"
    smallest: ClassVar[int | None] = 13
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8_wide"]
    norm: Norm = "batch"
    """Normalisation behind each convolution."""
    width: Width = 128
    """Channels of the first block."""


class CnnFedEt(Headed):
    """The small network of Fed-ET: two convolutions and five linear layers."""

    smallest: ClassVar[int | None] = 16
    name: Literal["cnn_fed_et"]
    channels: Annotated[tuple[Width, Width], Field(strict=False)] = (64, 64)
    """Channels of the convolutions."""


class ResNet18(Headed):
    """ResNet-18 of He et al. 2016, as torchvision has it."""

    smallest: ClassVar[int | None] = 32
    name: Literal["resnet18"]
    norm: Norm = "batch"
    """Normalisation behind each convolution."""


class Vgg19(Headed):
    """VGG-19 of Simonyan and Zisserman 2015 without batch normalisation, with one linear layer."""

    smallest: ClassVar[int | None] = 32
    name: Literal["vgg19"]


class OfTexts(Headed):
    """An architecture for texts."""

    samples: ClassVar[tuple[str, ...]] = ("tokens",)
    vocabulary: Positive = 30_522
    """Tokens that have an embedding."""


class Lstm(OfTexts):
    """LSTM layers (Hochreiter and Schmidhuber 1997) that read a text from left to right.

    The last layer's numbers at a text's last token go through a linear layer. The default sizes are
    Fed-ET's.
    """

    compiles: ClassVar[bool] = False
    by_sample: ClassVar[bool] = False
    name: Literal["lstm"]
    embedding: Width = 52
    """Dimension of tokens, which Fed-ET leaves open; the default makes the size that its Table 6
    has.
    """
    layers: Layers = 2
    """LSTM layers."""
    hidden: Width = 256
    """Numbers of a layer."""


class EmbeddingBag(OfTexts):
    """The mean of the embeddings of a text's tokens, and one linear layer.

    fastText's classifier (Joulin et al. 2017) without n-grams.
    """

    name: Literal["embedding_bag"]
    embedding: Width = 64
    """Dimension of tokens."""


class Transformer(OfTexts):
    """A transformer for texts; needs the extra `text`."""

    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    package: ClassVar[str | None] = "transformers"
    positions: Width = 512
    """Tokens of the longest text."""
    layers: Layers
    """Layers of attention."""
    heads: Width
    """Heads of attention."""
    width: Width
    """Dimension of tokens."""
    hidden: Width
    """Dimension between the two layers behind attention."""
    weights: Pretrained | None = None
    """What all layers but the classifier's start from: the state dict of a published model."""

    def _faults(self) -> Iterator[str]:
        if self.width % self.heads:
            yield f"width = {self.width}: must be a multiple of heads = {self.heads}"


class DistilBert(Transformer):
    """DistilBERT (Sanh et al. 2019) with a classifier, by default in its published size."""

    by_sample: ClassVar[bool] = False
    name: Literal["distilbert"]
    layers: Layers = 6
    """Layers of attention."""
    heads: Width = 12
    """Heads of attention."""
    width: Width = 768
    """Dimension of tokens."""
    hidden: Width = 3072
    """Dimension between the two layers behind attention."""


class Bert(Transformer):
    """BERT (Devlin et al. 2019) with a classifier, by default as small as Tiny-BERT.

    Tiny-BERT and Mini-BERT, of 4 layers, 4 heads, `width` 256 and `hidden` 1024, are from Turc
    et al. 2019.
    """

    by_sample: ClassVar[bool] = False
    name: Literal["bert"]
    layers: Layers = 2
    """Layers of attention."""
    heads: Width = 2
    """Heads of attention."""
    width: Width = 128
    """Dimension of tokens."""
    hidden: Width = 512
    """Dimension between the two layers behind attention."""


_Common = CnnSmall | Cnn | LogisticRegression | ResNet | ResNetLower | ResNetUpper | WideResNet
_OfPapers = ResNetWide | DeepMil | EfficientNet | CnnFedEt | ResNet18 | Vgg19
_OfTexts = DistilBert | Lstm | Bert | EmbeddingBag
Model = ByName[_Common | _OfPapers | _OfTexts | Perceptron]


def head_of(model: Architecture) -> Head | None:
    """Return the head of a model, if it has one."""
    head: Head | None = getattr(model, "head", None)
    return head


def default_head(parts: Iterable[Part]) -> Head | None:
    """Return the `default_head` of the first part that needs models with a head, if one does."""
    for part in parts:
        if any(Trait.HEAD in part.needs[condition] for condition in filter(part.holds, part.needs)):
            return getattr(part.settings, "default_head", Head())
    return None


def with_default(model: Model, head: Head) -> Model:
    """Return a model with this head, if it has none and its architecture takes one."""
    takes = isinstance(model, Headed) and model.head is None
    return model.model_copy(update={"head": head}) if takes else model


def has_batch_norm(model: Model) -> bool:
    """Whether a model has running statistics of batch normalisation."""
    return getattr(model, "norm", "none") == "batch"


class InitialModel(Settings):
    """Settings of initial weights, which depend on the group and the data, too."""

    model: Model
    seed: Seed
