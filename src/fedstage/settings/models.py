"""Architectures of models."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import ByName, Choice, Count, Positive, Seed, Settings
from fedstage.settings.heads import Head

Norm = Literal["batch", "group", "none"]
#: Of residual blocks that change the number of channels: without (A) or with a projection (B).
Shortcut = Literal["A", "B"]


class Architecture(Choice):
    """An architecture, whose input is one of `samples`: images, features, bags or tokens.

    `smallest` is the least height and width of images; None if any size will do. `compiles`: the
    compiler of `numerics.compile` takes it. `pools_maps`: layer `pool` takes its last feature maps.
    A model has an output a class and `more_outputs` behind them, which votes of one shot may read:
    so many, or its `features`, with which a prototype a class is compared.
    """

    room: ClassVar[str] = "models.architectures"
    samples: ClassVar[tuple[str, ...]] = ("images",)
    smallest: ClassVar[int | None] = None
    compiles: ClassVar[bool] = True
    pools_maps: ClassVar[bool] = False
    more_outputs: Count | Literal["features"] = 0


class Headed(Architecture):
    """An architecture whose last layer can be replaced by a `head`."""

    head: Head | None = None


class CnnSmall(Headed):
    """Two convolutions and two linear layers."""

    smallest: ClassVar[int | None] = 4
    name: Literal["cnn_small"]
    width: Positive = 16
    hidden: Positive = 64
    norm: Norm = "none"


class LogisticRegression(Architecture):
    """One linear layer on the flattened input.

    `outputs` = 1, for two classes: the second's logit, the first's being 0. The cross entropy is
    then the binary cross entropy of the sigmoid.
    """

    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["logistic_regression"]
    outputs: Literal[1] | None = None


class Perceptron(Headed):
    """Linear layers on the flattened input, with `hidden` units each and ReLU between them."""

    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["mlp"]
    hidden: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (64, 64)


class ResNet(Headed):
    """CIFAR ResNet of He et al. 2016, 6n+2 layers; shortcuts without (A) or with projection (B)."""

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8", "resnet20", "resnet32", "resnet56"]
    norm: Norm = "batch"
    shortcut: Shortcut = "A"


class Lower(Architecture):
    """A small model that is whole, and whose `body` gives an `Upper` feature maps to go on from.

    The maps have `width` channels, and the height and width of the images.
    """

    width: Positive = 16

    def features(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the features of a sample of this shape."""
        return (self.width, *shape[1:])


class Upper(Architecture):
    """A model that goes on from feature maps of `width` channels, which a `Lower`'s body gives."""

    samples: ClassVar[tuple[str, ...]] = ("feature maps",)
    width: Positive = 16


class ResNetLower(Lower):
    """The beginning of a CIFAR ResNet, and a linear layer; with 3 residual `blocks` 8 layers."""

    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_lower"]
    blocks: Count = 3
    norm: Norm = "batch"


class ResNetUpper(Upper):
    """The rest of a CIFAR ResNet: 3 stages of `blocks` residual blocks.

    They have `width`, 2 and 4 times `width` channels. With 9 blocks it has 55 layers.
    """

    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_upper"]
    blocks: Positive = 9
    norm: Norm = "batch"
    shortcut: Shortcut = "A"


class WideResNet(Headed):
    """Wide residual network of Zagoruyko and Komodakis 2016: 16 layers, width factor 2."""

    module: ClassVar[str] = "wide_resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["wrn16_2"]
    norm: Norm = "batch"


class DeepMil(Architecture):
    """Gated attention over the instances of a bag (Ilse et al. 2018), as in FLamby's baseline.

    `width` is the dimension of embedded instances and of attention.
    """

    samples: ClassVar[tuple[str, ...]] = ("bags",)
    name: Literal["deep_mil"]
    width: Positive = 128
    outputs: Literal[1] | None = 1


class Pretrained(Settings):
    """A file of weights below the data folder, and its SHA-256 or the first digits thereof."""

    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]


class EfficientNet(Headed):
    """EfficientNet-B0 (Tan and Le 2019) with a linear layer for the classes.

    All layers but the last start from `weights`: a state dict of torchvision's model, in PyTorch's
    format or safetensors.
    """

    module: ClassVar[str] = "efficientnet"
    smallest: ClassVar[int | None] = 32
    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    name: Literal["efficientnet_b0"]
    weights: Pretrained | None = None
    norm: ClassVar[str] = "batch"


class ResNetWide(Headed):
    """The ResNet-8 of FENS: three blocks with `width`, 2 and 4 times `width` channels."""

    module: ClassVar[str] = "resnet_wide"
    smallest: ClassVar[int | None] = 13
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8_wide"]
    norm: Norm = "batch"
    width: Positive = 128


class CnnFedEt(Headed):
    """The small network of Fed-ET: two convolutions with `channels`, and five linear layers."""

    smallest: ClassVar[int | None] = 16
    name: Literal["cnn_fed_et"]
    channels: Annotated[tuple[Positive, Positive], Field(strict=False)] = (64, 64)


class ResNet18(Headed):
    """ResNet-18 of He et al. 2016, as torchvision has it."""

    smallest: ClassVar[int | None] = 32
    name: Literal["resnet18"]
    norm: Norm = "batch"


class Vgg19(Headed):
    """VGG-19 of Simonyan and Zisserman 2015 without batch normalisation, with one linear layer."""

    smallest: ClassVar[int | None] = 32
    name: Literal["vgg19"]


class OfTexts(Headed):
    """An architecture for texts, with an embedding of each of `vocabulary` tokens."""

    samples: ClassVar[tuple[str, ...]] = ("tokens",)
    vocabulary: Positive = 30_522


class Lstm(OfTexts):
    """LSTM layers (Hochreiter and Schmidhuber 1997) that read a text from left to right.

    The last layer's `hidden` numbers at a text's last token go through a linear layer. The default
    sizes are Fed-ET's; `embedding`, which it leaves open, makes the size that its Table 6 has.
    """

    compiles: ClassVar[bool] = False
    name: Literal["lstm"]
    embedding: Positive = 52
    layers: Positive = 2
    hidden: Positive = 256


class Transformer(OfTexts):
    """A transformer for texts of at most `positions` tokens; needs the extra `text`.

    `width` is the dimension of tokens, `hidden` that between the two layers behind attention. All
    layers but the classifier's start from `weights`, the state dict of a published model.
    """

    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    positions: Positive = 512
    layers: Positive
    heads: Positive
    width: Positive
    hidden: Positive
    weights: Pretrained | None = None

    def _faults(self) -> Iterator[str]:
        if self.width % self.heads:
            yield f"width = {self.width}: must be a multiple of heads = {self.heads}"


class DistilBert(Transformer):
    """DistilBERT (Sanh et al. 2019) with a classifier, by default in its published size."""

    name: Literal["distilbert"]
    layers: Positive = 6
    heads: Positive = 12
    width: Positive = 768
    hidden: Positive = 3072


class Bert(Transformer):
    """BERT (Devlin et al. 2019) with a classifier, by default as small as Tiny-BERT.

    Tiny-BERT and Mini-BERT, of 4 layers, 4 heads, `width` 256 and `hidden` 1024, are those of Turc
    et al. 2019.
    """

    name: Literal["bert"]
    layers: Positive = 2
    heads: Positive = 2
    width: Positive = 128
    hidden: Positive = 512


Model = ByName[
    CnnSmall
    | LogisticRegression
    | ResNet
    | ResNetLower
    | ResNetUpper
    | WideResNet
    | ResNetWide
    | DeepMil
    | EfficientNet
    | CnnFedEt
    | ResNet18
    | Vgg19
    | DistilBert
    | Lstm
    | Bert
    | Perceptron
]


def head_of(model: Architecture) -> Head | None:
    """Return the head of a model, if it has one."""
    head: Head | None = getattr(model, "head", None)
    return head


def has_batch_norm(model: Model) -> bool:
    """Whether a model has running statistics of batch normalisation."""
    return getattr(model, "norm", "none") == "batch"


class InitialModel(Settings):
    """Settings of initial weights, which depend on the group and the data, too."""

    model: Model
    seed: Seed
