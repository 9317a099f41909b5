"""Architectures of models.

One file because all alternatives can be read next to one another.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fedstage.errors import FedstageError
from fedstage.settings.base import (
    SHA256,
    ByName,
    Choice,
    Fraction,
    Functions,
    Layers,
    Positive,
    Rate,
    Seed,
    Settings,
    Width,
)

Norm = Literal["batch", "group", "none"]
#: Shortcuts of residual blocks that change the number of channels: without a projection (A) or with
#: one (B).
Shortcut = Literal["A", "B"]


def _listed(given: Any) -> Any:
    return given if isinstance(given, list | tuple) else [given]


_SEVERAL = Field(strict=False, min_length=1)
_Part = Annotated[str, Field(min_length=1)]
#: Parts of a model, of which a single one needs no list: see `fedstage.models.parts`.
Parts = Annotated[
    tuple[_Part, ...], BeforeValidator(_listed, json_schema_input_type=str | list[str]), _SEVERAL
]


class LowRank(Settings):
    """Trained matrices A and B for each of some weights, to which (alpha / rank) B A is added."""

    rank: Positive = 8
    """Number of rows of A, and of columns of B."""
    alpha: Rate = 16.0
    """Scale of the products."""
    targets: Parts = ("*weight",)
    """Layers or weights that get products, without those that are trained themselves; by default
    all weights of two or more dimensions.
    """
    freeze_a: bool = False
    """Whether only B is trained (FFA-LoRA)."""
    merged: bool = False
    """Whether the server adds the mean of clients' products to the weights after each round, and
    clients begin with new matrices (FLoRA). That is exact, which products of mean matrices are not.
    """

    @model_validator(mode="after")
    def _no_frozen_a(self) -> Self:
        if self.merged and self.freeze_a:
            raise ValueError("merged: not with freeze_a = true, of which means are exact")
        return self


class Lora(Settings):
    """Low-rank adaptation (Hu et al. 2022)."""

    lora: LowRank
    """Its matrices."""


#: Parts that are trained.
TrainedParts = Annotated[
    tuple[_Part | Lora, ...],
    BeforeValidator(_listed, json_schema_input_type=str | Lora | list[str | Lora]),
    _SEVERAL,
]


class Head(Settings):
    """Layers that end a model of any architecture, the same for all: x -> z -> logits."""

    hidden: Width = 128
    """Dimension of x, the architecture's output in place of classes, before a ReLU."""
    width: Width = 128
    """Dimension of the representation z."""
    relu: bool = True
    """Whether another ReLU ends the representation."""


class Architecture(Choice):
    """An architecture, whose input is one of `samples`: images, features, bags or tokens.

    `smallest`: the least height and width of images; None if any size will do. `by_sample`:
    whether torch.func gives the gradients of single samples of a batch. `pools_maps`: whether layer
    `pool` takes its last feature maps. `is_linear`: whether only its last layer, `linear`, has
    parameters.
    """

    room: ClassVar[str] = "models.architectures"
    functions: ClassVar[Functions] = {"network": ("settings", "shape", "classes")}
    samples: ClassVar[tuple[str, ...]] = ("images",)
    smallest: ClassVar[int | None] = None
    by_sample: ClassVar[bool] = True
    pools_maps: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    more_outputs: Annotated[int, Field(ge=0, le=100_000)] | Literal["features"] = 0
    """Further outputs after one per class, which one-shot votes may read: a number, or the model's
    features, which are compared with one prototype per class.
    """
    trainable: TrainedParts | None = None
    """Parts that are trained, sent and stored: `head`, the model's `head` or last layer; `norm`,
    its norms; layers and tensors by their names, in which `*` stands for any letters; or `lora`,
    products added to weights. The others stay at the weights that the seed's models start from. By
    default all are trained.
    """


class Headed(Architecture):
    """An architecture whose last layer can be replaced by a `head`."""

    head: Head | None = None
    """Layers in place of the last layer; by default the last layer stays."""


class Dropping(Settings):
    """Networks with dropout, a setting that digests never leave out: the first had none."""

    dropout: Fraction

    @model_serializer(mode="wrap")
    def _with_dropout(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**dump(self), "dropout": self.dropout}


class CnnSmall(Headed):
    """Two convolutions and two linear layers."""

    module: ClassVar[str] = "cnn"
    smallest: ClassVar[int | None] = 4
    name: Literal["cnn_small"]
    width: Width = 16
    """Channels of the first convolution; the second has twice as many."""
    hidden: Width = 64
    """Units of the first linear layer."""
    norm: Norm = "none"
    """Normalisation after each convolution."""


class Cnn(Headed):
    """3x3 convolutions, each followed by 2x2 max-pooling, and one linear layer."""

    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["cnn"]
    channels: Annotated[tuple[Width, ...], Field(strict=False, min_length=1, max_length=3)] = (
        16, 32, 64,
    )  # fmt: skip
    """Channels of the convolutions."""
    norm: Norm = "none"
    """Normalisation after each convolution."""


class LogisticRegression(Architecture):
    """One linear layer on the flattened input."""

    module: ClassVar[str] = "perceptron"
    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    is_linear: ClassVar[bool] = True
    name: Literal["logistic_regression"]
    outputs: Literal[1] | None = None
    """1 gives a single logit for two classes: the logit of the second class, while the first has 0.
    The cross entropy is then the binary cross entropy of the sigmoid. By default each class has a
    logit.
    """


class Perceptron(Headed):
    """Linear layers on the flattened input, with ReLU between them."""

    module: ClassVar[str] = "perceptron"
    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["mlp"]
    hidden: Annotated[tuple[Width, ...], Field(strict=False, min_length=1)] = (64, 64)
    """Units of each layer except the last."""


class Safle(Architecture):
    """A linear layer on a fixed map of features to sparse codes (SAFLe).

    The features of a sample are standardised and bounded by 3 deviations, and each falls into
    overlapping bins. Bits tell in which; shuffled, they are cut into groups. The code of a group
    selects one of its 2^group indicators.
    """

    module: ClassVar[str] = "perceptron"
    samples: ClassVar[tuple[str, ...]] = ("features",)
    by_sample: ClassVar[bool] = False
    is_linear: ClassVar[bool] = True
    name: Literal["safle"]
    bucketings: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of divisions into bins, each moved a little against the one before."""
    bins: Annotated[int, Field(ge=2, le=64)] = 2
    """Bins of a division; each overlaps the next by half."""
    group: Annotated[int, Field(ge=1, le=12)] = 4
    """Number of bits of a code."""
    shuffling: Seed = 0
    """Seed of the order of bits, the same for all clients."""


class ResNet(Headed):
    """CIFAR ResNet with 6n+2 layers (He et al. 2016)."""

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8", "resnet20", "resnet32", "resnet56"]
    norm: Norm = "batch"
    """Normalisation after each convolution."""
    shortcut: Shortcut = "A"
    """Shortcut of residual blocks that change the number of channels: without a projection (A) or
    with one (B).
    """


class Lower(Architecture):
    """A small, complete model whose `body` gives feature maps to an `Upper`.

    The maps have the height and width of the images.
    """

    width: Width = 16
    """Channels of the feature maps that the body gives."""


class Upper(Architecture):
    """A model that continues from the feature maps of a `Lower`'s body."""

    samples: ClassVar[tuple[str, ...]] = ("feature maps",)
    width: Width = 16
    """Channels of the feature maps that the model takes."""


class ResNetLower(Lower):
    """The beginning of a CIFAR ResNet, followed by a linear layer."""

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_lower"]
    blocks: Annotated[int, Field(ge=0, le=1000)] = 3
    """Number of residual blocks; with 3, the model has 8 layers."""
    norm: Norm = "batch"
    """Normalisation after each convolution."""


class ResNetUpper(Upper):
    """The rest of a CIFAR ResNet: 3 stages of residual blocks.

    The stages have `width`, 2 `width` and 4 `width` channels.
    """

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 8
    name: Literal["resnet_upper"]
    blocks: Layers = 9
    """Residual blocks per stage; with 9, the model has 55 layers."""
    norm: Norm = "batch"
    """Normalisation after each convolution."""
    shortcut: Shortcut = "A"
    """Shortcut of residual blocks that change the number of channels: without a projection (A) or
    with one (B).
    """


class WideResNet(Headed):
    """Wide residual network with 16 layers and width factor 2 (Zagoruyko and Komodakis 2016)."""

    module: ClassVar[str] = "wide_resnet"
    smallest: ClassVar[int | None] = 8
    pools_maps: ClassVar[bool] = True
    name: Literal["wrn16_2"]
    norm: Norm = "batch"
    """Normalisation before each convolution."""


class DeepMil(Architecture):
    """Gated attention over the instances of a bag (Ilse et al. 2018), as in FLamby's baseline."""

    samples: ClassVar[tuple[str, ...]] = ("bags",)
    outputs: ClassVar[int] = 1  # the logit of the second class, while the first has 0
    name: Literal["deep_mil"]
    width: Width = 128
    """Dimension of embedded instances and of the attention."""


class Pretrained(Settings):
    """A file of pretrained weights."""

    file: str
    """Path of the file, below the data folder."""
    sha256: Annotated[str, Field(pattern=SHA256)] | None = None
    """SHA-256 checksum of the file, or its first digits. Without it the plan shows the file's,
    which must be given, since another file gives other results.
    """


class EfficientNet(Headed, Dropping):
    """EfficientNet-B0 (Tan and Le 2019) with a linear layer for the classes."""

    module: ClassVar[str] = "torchvision_models"
    smallest: ClassVar[int | None] = 32
    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    by_sample: ClassVar[bool] = False
    name: Literal["efficientnet_b0"]
    weights: Pretrained | None = None
    """Pretrained weights of all layers but the last: a state dict of torchvision's model, in
    PyTorch's format or safetensors. By default weights are random.
    """
    dropout: Fraction = 0.2
    """Share of features dropped before the last layer, and the rate of stochastic depth."""
    norm: ClassVar[str] = "batch"


class ResNetWide(Headed):
    """The ResNet-8 of FENS: three blocks with `width`, 2 `width` and 4 `width` channels."""

    module: ClassVar[str] = "resnet"
    smallest: ClassVar[int | None] = 13
    pools_maps: ClassVar[bool] = True
    name: Literal["resnet8_wide"]
    norm: Norm = "batch"
    """Normalisation after each convolution."""
    width: Width = 128
    """Channels of the first block."""


class CnnFedEt(Headed):
    """The small network of Fed-ET: two convolutions and five linear layers."""

    module: ClassVar[str] = "cnn"
    smallest: ClassVar[int | None] = 16
    name: Literal["cnn_fed_et"]
    channels: Annotated[tuple[Width, Width], Field(strict=False)] = (64, 64)
    """Channels of the convolutions."""


class ResNet18(Headed):
    """ResNet-18 (He et al. 2016), as in torchvision."""

    module: ClassVar[str] = "torchvision_models"
    smallest: ClassVar[int | None] = 32
    name: Literal["resnet18"]
    norm: Norm = "batch"
    """Normalisation after each convolution."""


class Vgg19(Headed):
    """VGG-19 without batch normalisation, with one linear layer (Simonyan and Zisserman 2015)."""

    module: ClassVar[str] = "torchvision_models"
    smallest: ClassVar[int | None] = 32
    name: Literal["vgg19"]


class OfTexts(Headed):
    """An architecture for texts."""

    samples: ClassVar[tuple[str, ...]] = ("tokens",)
    vocabulary: Positive = 30_522
    """Number of tokens that have an embedding."""


class Lstm(OfTexts):
    """LSTM layers (Hochreiter and Schmidhuber 1997) that read a text from left to right.

    The output of the last layer at a text's last token goes through a linear layer. The default
    sizes are Fed-ET's.
    """

    module: ClassVar[str] = "texts"
    by_sample: ClassVar[bool] = False
    name: Literal["lstm"]
    embedding: Width = 52
    """Dimension of token embeddings. Fed-ET does not state it; the default gives the model size of
    its Table 6.
    """
    layers: Layers = 2
    """Number of LSTM layers."""
    hidden: Width = 256
    """Hidden units per layer."""


class EmbeddingBag(OfTexts):
    """The mean of the embeddings of a text's tokens, followed by one linear layer.

    This is fastText's classifier (Joulin et al. 2017) without n-grams.
    """

    module: ClassVar[str] = "texts"
    name: Literal["embedding_bag"]
    embedding: Width = 64
    """Dimension of token embeddings."""


class Transformer(OfTexts, Dropping):
    """A transformer for texts; needs the extra `text`."""

    by_sample: ClassVar[bool] = False
    uses: ClassVar[Mapping[str, str]] = {"weights": "models.pretrained"}
    package: ClassVar[str | None] = "transformers"
    positions: Width = 512
    """Number of tokens of the longest text."""
    layers: Layers
    """Number of attention layers."""
    heads: Width
    """Attention heads per layer."""
    width: Width
    """Dimension of token representations."""
    hidden: Width
    """Dimension between the two linear layers that follow attention."""
    weights: Pretrained | None = None
    """Pretrained weights of all layers but the classifier's: the state dict of a published model.
    By default weights are random.
    """
    dropout: Fraction = 0.1
    """Share of embeddings, attention weights and units of layers dropped in training."""

    def _faults(self) -> Iterator[str]:
        if self.width % self.heads:
            yield f"width = {self.width}: must be a multiple of heads = {self.heads}"


class DistilBert(Transformer):
    """DistilBERT (Sanh et al. 2019) with a classifier, by default in its published size.

    As published, twice the share `dropout` is dropped before the last layer.
    """

    module: ClassVar[str] = "transformer"
    name: Literal["distilbert"]
    layers: Layers = 6
    heads: Width = 12
    width: Width = 768
    hidden: Width = 3072


class Bert(Transformer):
    """BERT (Devlin et al. 2019) with a classifier, by default as small as Tiny-BERT.

    Tiny-BERT and Mini-BERT are from Turc et al. 2019. Mini-BERT has 4 layers, 4 heads, `width` 256
    and `hidden` 1024.
    """

    module: ClassVar[str] = "transformer"
    name: Literal["bert"]
    layers: Layers = 2
    heads: Width = 2
    width: Width = 128
    hidden: Width = 512


_Common = CnnSmall | Cnn | LogisticRegression | ResNet | ResNetLower | ResNetUpper | WideResNet
_OfPapers = ResNetWide | DeepMil | EfficientNet | CnnFedEt | ResNet18 | Vgg19
_OfTexts = DistilBert | Lstm | Bert | EmbeddingBag
Model = ByName[_Common | _OfPapers | _OfTexts | Perceptron | Safle]


def with_default(model: Model, head: Head) -> Model:
    """Return a model with this head, if it has none and its architecture takes one."""
    takes = isinstance(model, Headed) and model.head is None
    return model.model_copy(update={"head": head}) if takes else model


def check_size(settings: Architecture, shape: tuple[int, ...]) -> None:
    """Raise FedstageError if samples are no images, or smaller ones than an architecture needs."""
    smallest = settings.smallest
    if smallest is None:
        return
    if len(shape) != 3:
        raise FedstageError(
            f"model = {settings.name}: samples of shape {list(shape)}: needs images, [C, H, W]"
        )
    _, height, width = shape
    if min(height, width) < smallest:
        raise FedstageError(
            f"model = {settings.name}: images of {height}x{width} pixels (shape {list(shape)}): "
            f"needs at least {smallest}x{smallest}"
        )


class InitialModel(Settings):
    """Settings of initial weights, which also depend on the group and the data."""

    model: Model
    seed: Seed
