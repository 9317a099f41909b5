"""Models, and which samples they take."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedstage.settings.base import BY_NAME, IN_SHORT, Positive, Settings

Norm = Literal["batch", "group", "none"]


class CnnSmall(Settings):
    """Two convolutions and two linear layers."""

    name: Literal["cnn_small"]
    width: Positive = 16
    hidden: Positive = 64
    norm: Norm = "none"


class LogisticRegression(Settings):
    """One linear layer on the flattened input.

    `outputs` = 1, for two classes: the logit of the second; that of the first is 0. With the cross
    entropy this is the sigmoid and the binary cross entropy.
    """

    name: Literal["logistic_regression"]
    outputs: Literal[1] | None = None


class ResNet(Settings):
    """CIFAR ResNet of He et al. 2016, 6n+2 layers; shortcuts without (A) or with projection (B)."""

    name: Literal["resnet8", "resnet20", "resnet32", "resnet56"]
    norm: Norm = "batch"
    shortcut: Literal["A", "B"] = "A"


class WideResNet(Settings):
    """Wide residual network of Zagoruyko and Komodakis 2016: 16 layers, width factor 2."""

    name: Literal["wrn16_2"]
    norm: Norm = "batch"


class DeepMil(Settings):
    """Gated attention over the instances of a bag (Ilse et al. 2018), as in FLamby's baseline.

    `width` is that of the embedded instances and of the attention. `outputs` = 1 as for logistic
    regression.
    """

    name: Literal["deep_mil"]
    width: Positive = 128
    outputs: Literal[1] | None = 1


class Pretrained(Settings):
    """A file of weights below the data folder, and the SHA-256 of it, or how that begins."""

    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]


class EfficientNet(Settings):
    """EfficientNet-B0 (Tan and Le 2019) with a linear layer for the classes.

    `weights` are those that all layers but the last start from: a state dict of torchvision's
    model, in a file of PyTorch's or of safetensors.
    """

    name: Literal["efficientnet_b0"]
    weights: Pretrained | None = None
    norm: ClassVar[str] = "batch"


class ResNetWide(Settings):
    """The ResNet-8 of FENS: three blocks with `width`, 2 and 4 times `width` channels."""

    name: Literal["resnet8_wide"]
    norm: Norm = "batch"
    width: Positive = 128


class DistilBert(Settings):
    """DistilBERT (Sanh et al. 2019) with a classifier; needs the extra `text`.

    The sizes are those of the published model. `weights` are those that all layers but the
    classifier's start from: the state dict of a published model.
    """

    name: Literal["distilbert"]
    vocabulary: Positive = 30_522
    positions: Positive = 512
    layers: Positive = 6
    heads: Positive = 12
    width: Positive = 768
    hidden: Positive = 3072
    weights: Pretrained | None = None

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> "DistilBert":
        if self.width % self.heads:
            raise ValueError(f"width = {self.width}: must be a multiple of heads = {self.heads}")
        return self


Model = Annotated[
    CnnSmall
    | LogisticRegression
    | ResNet
    | WideResNet
    | ResNetWide
    | DeepMil
    | EfficientNet
    | DistilBert,
    BY_NAME,
    IN_SHORT,
]

#: Models that take other samples than images.
SAMPLES_OF_MODELS = {
    "logistic_regression": ("images", "features"),
    "deep_mil": ("bags",),
    "distilbert": ("tokens",),
}


def has_batch_norm(model: Model) -> bool:
    """Whether a model has running statistics of batch normalisation."""
    return getattr(model, "norm", "none") == "batch"
