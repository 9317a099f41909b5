"""Every setting that can determine a result: the one typed definition, checked before any job runs.

The classes are frozen and refuse unknown keys. A *choice* (a model, a partition scheme, a trainer)
is an object with its `name` and its own settings; ``fedavg`` and ``{fedprox: {mu: 0.01}}`` are
short for ``{name: fedavg}`` and ``{name: fedprox, mu: 0.01}``. To add one, write its class here,
put it into the union of its kind, and a module of the same name into that kind's package.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fedstage.slots import slots_of, unbound_needed

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]  # may be part of a file's name

#: A value of an axis of an experiment's grid.
Axis = str | int | float | bool | None
#: Cells of a table: ``{method: [fedavg, feddf], partition.alpha: 0.1}`` are all with these values.
Cells = dict[str, Axis | Annotated[list[Axis], Field(min_length=1)]]

#: Measured seconds of a round, medians: of a participant's training, or of all jobs of a part.
Seconds = Literal[
    "participant_s",
    "training_s",
    "aggregation_s",
    "logits_s",
    "distillation_s",
    "added_s",
    "round_s",
]
#: Columns of the metrics that are in percent, the more the better.
Score = Literal["top1_accuracy", "balanced_accuracy", "auc"]
#: What a table is about, and its claims: scores, or columns of the table of seconds.
Metric = Literal[Score, Seconds]
SECONDS: frozenset[str] = frozenset(get_args(Seconds))

#: Local trainers that keep state from round to round.
STATEFUL_TRAINERS = ("scaffold",)

#: Settings whose value is a choice; merging replaces them where the name differs.
CHOICES = frozenset(
    {
        "data",
        "public",
        "partition",
        "model",
        "architectures",  # several of them
        "local",
        "compression",
        "server_optimizer",
        "ensemble",
        "global",
        "evaluate",
        "schedule",
        "aggregator",
        "aggregator_training",
        "distillation",
        "student",
    }
)


class Settings(BaseModel):
    """Base of all settings: frozen, strict about types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @cached_property
    def _field_hash(self) -> int:
        return hash(tuple(self.__dict__[name] for name in type(self).model_fields))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once: large graphs ask a million times."""
        return self._field_hash

    def __copy__(self) -> Self:
        """Return a copy, whose fields may then be changed by `model_copy`."""
        copied = super().__copy__()
        copied.__dict__.pop("_field_hash", None)
        return copied


def expand_choice(value: Any) -> Any:
    """Write a choice in full: ``a`` and ``{a: {b: 1}}`` become ``{name: a}`` and with ``b: 1``."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and "name" not in value and len(value) == 1:
        ((name, settings),) = value.items()
        if isinstance(settings, Mapping) or settings is None:
            return {"name": name, **(settings or {})}
    return value


_BY_NAME = Field(discriminator="name")
_IN_SHORT = BeforeValidator(expand_choice)


# --- data -----------------------------------------------------------------------------------------


class Digits(Settings):
    """Handwritten digits of scikit-learn: 1,797 grey images of 8x8 pixels, 10 classes.

    `server_validation` labelled training samples are the server's own (`Server.early_stopping`,
    `Server.drop_worst`): no client trains on them, and nothing is scored on them.
    """

    name: Literal["digits"]
    test: Positive = 360
    held_out: Count = 360
    server_validation: Count = 0
    split_seed: int = 0


class Sized(Settings):
    """How much of a data set is used, and what of its training samples clients do not have.

    `train_size` and `test_size` keep the first samples of a permutation drawn with `split_seed`,
    `train_fraction` that share of what may be trained on; `held_out` samples of the training set
    become an unlabelled public set, `server_validation` others a labelled set of the server's own.
    """

    train_size: Positive | None = None
    train_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    test_size: Positive | None = None
    held_out: Count = 0
    server_validation: Count = 0
    split_seed: int = 0

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.train_size is not None and self.train_fraction is not None:
            raise ValueError("train_size and train_fraction: give one of them")
        return self


class TorchvisionData(Sized):
    """A data set that torchvision reads, checksums included.

    `extra` adds SVHN's 531,131 further training images to its 73,257.
    """

    name: Literal["cifar10", "cifar100", "svhn"]
    extra: bool = False

    @model_validator(mode="after")
    def _extra_of_svhn(self) -> Self:
        if self.extra and self.name != "svhn":
            raise ValueError(f"extra = true: only for svhn, {self.name} has no such images")
        return self


class ParquetData(Sized):
    """Images in the Parquet layout of the Hugging Face hub, in `folder` below the data folder.

    Files are `train*.parquet` and `test*.parquet` with a column `img` or `image` of encoded images
    and an integer column `label`. `client_column` names a column for the natural partition.
    """

    name: Literal["parquet"]
    folder: str
    label: str = "label"
    client_column: str | None = None
    image_size: Positive | None = None


class HeartDisease(Settings):
    """Fed-Heart-Disease: the four centres of the UCI Heart Disease files, 13 features a patient.

    Prepared and split as FLamby does (Ogier du Terrail et al. 2022). The centres are the natural
    partition. A centre's training rows are standardised by their own mean and deviation, test rows
    by those of all training rows; with the role ``test_own`` by those of their centre, too.
    """

    name: Literal["heart_disease"]
    folder: str = "heart_disease"
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class Isic2019(Sized):
    """Fed-ISIC2019 as FLamby has preprocessed it: 23,247 pictures of skin, 8 classes, 6 centres.

    `folder` below the data folder holds the pictures and FLamby's split; the middle `crop` x `crop`
    pixels of each are used. The centres are the natural partition.
    """

    name: Literal["isic2019"]
    folder: str = "fed_isic2019"
    crop: Positive = 200


class Camelyon16(Settings):
    """Fed-Camelyon16 as FLamby has preprocessed it: slides as bags of tiles, 2 classes, 2 centres.

    `folder` below the data folder holds the features of the tiles and FLamby's table of slides. Of
    a slide with more than `max_tiles` tiles so many are drawn, always the same. The centres are the
    natural partition.
    """

    name: Literal["camelyon16"]
    folder: str = "fed_camelyon16"
    max_tiles: Positive = 10_000
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class AgNews(Sized):
    """AG News as published, texts of 4 classes, in `folder` below the data folder.

    `length` tokens of a text are kept. `vocabulary` is a file of WordPieces below the data folder,
    one a line; without one `vocabulary_size` pieces are taken from the texts that are trained on.
    """

    name: Literal["ag_news"]
    folder: str = "ag_news"
    length: Annotated[int, Field(ge=3)] = 128
    vocabulary: str | None = None
    vocabulary_size: Annotated[int, Field(ge=5)] = 30_522


Data = Annotated[
    Digits | TorchvisionData | ParquetData | HeartDisease | Isic2019 | Camelyon16 | AgNews,
    _BY_NAME,
    _IN_SHORT,
]

#: What the samples of a data set are, where they are no images.
KINDS_OF_SAMPLES = {"heart_disease": "features", "camelyon16": "bags", "ag_news": "tokens"}
#: Data sets whose test samples each client may prepare in its own way.
WITH_OWN_TEST = ("heart_disease",)


class HeldOut(Settings):
    """The part of the training data that `held_out` set aside, without its labels."""

    name: Literal["held_out"]


#: Public data: the held-out part, or the training images of another data set.
Public = Annotated[HeldOut | Digits | TorchvisionData | ParquetData | Isic2019, _BY_NAME, _IN_SHORT]


# --- partition ------------------------------------------------------------------------------------


class Iid(Settings):
    """Samples shuffled and dealt out evenly."""

    name: Literal["iid"]


class Dirichlet(Settings):
    """Each class divided over the clients by proportions drawn from Dir(alpha).

    A client that already has its even share gets no more (the mask of Yurochkin et al.). The draw
    is repeated, at most `max_draws` times, until every client has `min_samples`.
    """

    name: Literal["dirichlet"]
    alpha: Rate
    min_samples: Positive = 10
    max_draws: Positive = 1000
    mask: bool = True


class DirichletEqual(Settings):
    """FedDF's variant: Dirichlet draws in blocks of 10 clients, re-cut to equal sizes."""

    name: Literal["dirichlet_equal"]
    alpha: Rate
    max_draws: Positive = 1000


class Shards(Settings):
    """Sorted by class and cut into shards; every client gets `classes_per_client` of them."""

    name: Literal["shards"]
    classes_per_client: Positive = 2


class Natural(Settings):
    """The client column of the data set."""

    name: Literal["natural"]


Partition = Annotated[Iid | Dirichlet | DirichletEqual | Shards | Natural, _BY_NAME, _IN_SHORT]


# --- models ---------------------------------------------------------------------------------------

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
    _BY_NAME,
    _IN_SHORT,
]

#: Models that take other samples than images.
SAMPLES_OF_MODELS = {
    "logistic_regression": ("images", "features"),
    "deep_mil": ("bags",),
    "distilbert": ("tokens",),
}


# --- optimisation ---------------------------------------------------------------------------------


class Constant(Settings):
    """The learning rate as it is."""

    name: Literal["constant"]


class Step(Settings):
    """Multiplied by `factor` after each of `milestones`, fractions of the training's steps."""

    name: Literal["step"]
    milestones: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1)]
    factor: Rate = 0.1


class Cosine(Settings):
    """Half a cosine from the learning rate down to `final` times it."""

    name: Literal["cosine"]
    final: NonNegative = 0.0


class Cyclical(Settings):
    """From the learning rate linearly down to `final` times it, anew every `cycle` steps."""

    name: Literal["cyclical"]
    cycle: Positive
    final: NonNegative = 0.0


Schedule = Annotated[Constant | Step | Cosine | Cyclical, _BY_NAME, _IN_SHORT]


class Optimiser(Settings):
    """Stochastic gradient descent and its schedule, shared by clients and server."""

    optimiser: Literal["sgd", "adam"] = "sgd"
    learning_rate: Rate
    schedule: Schedule = Constant(name="constant")
    momentum: Fraction = 0.0
    nesterov: bool = False
    weight_decay: NonNegative = 0.0
    clip_norm: Rate | None = None
    batch_size: Positive
    augmentation: Literal["none", "flip", "crop_flip"] = "none"

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> "Optimiser":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov = true needs momentum > 0")
        return self


class Client(Optimiser):
    """A participant's training in one round: `epochs` over its data, or `steps`.

    `schedule` runs within a round; `round_decay` multiplies the learning rate once a round. Batches
    are drawn `anew` in every round or, of `steps`, `continued`: each round goes on in the
    permutation of the samples where the round before has stopped.
    """

    epochs: Positive | None = None
    steps: Positive | None = None
    round_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    last_batch: Literal["keep", "drop", "drop_single", "merge_single"] = "merge_single"
    batches: Literal["anew", "continued"] = "anew"

    @model_validator(mode="after")
    def _one_length(self) -> "Client":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.batches == "continued" and self.steps is None:
            raise ValueError("batches = 'continued': only with steps; epochs end with a round")
        return self


class WeightAverage(Settings):
    """Stochastic weight averaging: the mean of the weights after each `every`-th step.

    Steps up to `start` do not count.
    """

    start: Count = 0
    every: Positive = 25


class EarlyStopping(Settings):
    """Stop after `patience` steps without a better accuracy on the server's validation set.

    It is measured after every `every`-th step and the last; the best weights are kept.
    """

    every: Positive = 100
    patience: Positive = 1000


class Server(Optimiser):
    """Distillation on the server, each round: `steps` on batches of public data.

    `tau_squared` multiplies the loss by the squared temperature, the customary form. `sharpening`
    is the power that the teacher's probabilities are raised to before. `augmentation` is of the
    images that the student sees: what the teacher says is of the image as it is. `drop_worst`
    leaves the worst client models out of the fusion.
    """

    steps: Positive
    temperature: Rate = 4.0
    tau_squared: bool = True
    sharpening: Rate = 1.0
    swa: WeightAverage | None = None
    early_stopping: EarlyStopping | None = None
    drop_worst: Literal["none", "as_published", "as_released"] = "none"

    @model_validator(mode="after")
    def _one_choice_of_weights(self) -> "Server":
        if self.swa is not None and self.early_stopping is not None:
            raise ValueError("swa and early_stopping: give one, each says which weights are kept")
        if self.swa is not None and self.swa.start + self.swa.every > self.steps:
            raise ValueError(
                f"swa.start = {self.swa.start}: at most steps - swa.every = "
                f"{self.steps - self.swa.every}, so that there are weights to average"
            )
        return self


# --- the parts of a method ------------------------------------------------------------------------


class FedAvg(Settings):
    """Plain local training (McMahan et al. 2017)."""

    name: Literal["fedavg"]


class FedProx(Settings):
    """A proximal term mu/2 ||w - w_start||^2 (Li et al. 2020)."""

    name: Literal["fedprox"]
    mu: NonNegative = 0.001


class Scaffold(Settings):
    """Control variates (Karimireddy et al. 2020).

    A client's new variate is, by `option`, the gradient of all its data at the model that the round
    starts from (I), or the mean of its steps (II). `control` is kept for each global model, or
    shared by all of them. In the server's variate clients weigh alike, as published, or by their
    `samples`, as in FLamby's code.
    """

    name: Literal["scaffold"]
    option: Literal["I", "II"] = "II"
    control: Literal["per_model", "shared"] = "per_model"
    weights: Literal["uniform", "samples"] = "uniform"

    @model_validator(mode="after")
    def _weighs_clients_of_one_group(self) -> "Scaffold":
        if self.control == "shared" and self.weights != "uniform":
            raise ValueError(
                f"weights = {self.weights!r}: only for control = 'per_model', because no group "
                "knows the samples of the others"
            )
        return self


class FedNova(Settings):
    """Normalised averaging (Wang et al. 2020): steps in which clients differ do not count.

    The client's momentum is `client.momentum`, the global one `aggregation.server_optimizer` =
    ``momentum``.
    """

    name: Literal["fednova"]


LocalTrainer = Annotated[FedAvg | FedProx | Scaffold | FedNova, _BY_NAME, _IN_SHORT]


class Uncompressed(Settings):
    """Updates go as they are."""

    name: Literal["none"]


class Stc(Settings):
    """Sparse updates in few bits: what FENS calls FedAvg-STC.

    Of each tensor's change the share `sparsity` of the entries, the smallest, is left out, and the
    others are sent in `bits` bits. With `residuals` what was left out is added to the next change.
    `downstream` does the same to the change of the global model. `count` says whether bytes are
    those of values and positions, or of values only, as published.
    """

    name: Literal["stc"]
    sparsity: Fraction = 0.5
    bits: Literal[16, 32] = 16
    residuals: bool = True
    downstream: bool = True
    count: Literal["encoded", "published"] = "encoded"


Compression = Annotated[Uncompressed | Stc, _BY_NAME, _IN_SHORT]


class ServerAverage(Settings):
    """No optimiser on the server: the participants' mean."""

    name: Literal["average"]


class ServerMomentum(Settings):
    """FedAvgM (Hsu et al. 2019): heavy ball, with `damped` new terms, or Nesterov's."""

    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    beta: Fraction = 0.9
    form: Literal["heavy_ball", "damped", "nesterov"] = "heavy_ball"


class Adaptive(Settings):
    """Settings that Adam and Yogi on the server share (Reddi et al. 2021).

    The step is m / (sqrt(v) + epsilon), or by `epsilon_in_root` m / sqrt(v + epsilon). v starts at
    0, as in released code, or at epsilon^2, as published. `bias_correction` is Kingma and Ba's.
    """

    learning_rate: Rate = 0.01
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: Rate = 0.001
    epsilon_in_root: bool = False
    bias_correction: bool = False
    v_start: Literal["zero", "epsilon_squared"] = "zero"

    @model_validator(mode="after")
    def _corrects_a_start_at_zero(self) -> "Adaptive":
        if self.bias_correction and self.v_start != "zero":
            raise ValueError(
                f"v_start = {self.v_start!r}: must be zero with bias_correction = true, which "
                "corrects for a start at zero"
            )
        return self


class ServerAdam(Adaptive):
    """FedAdam."""

    name: Literal["adam"]


class ServerYogi(Adaptive):
    """FedYogi."""

    name: Literal["yogi"]


ServerOptimiser = Annotated[
    ServerAverage | ServerMomentum | ServerAdam | ServerYogi, _BY_NAME, _IN_SHORT
]


class Aggregation(Settings):
    """The average over the participants of a group.

    The parameters go `learning_rate` times the way from the model that the round started from to
    the average: eta_g of SCAFFOLD. A `server_optimizer` other than ``average`` takes that way as
    its gradient, with a rate of its own. `batch_norm` says which running statistics of batch
    normalisation the new model has: the clients' average; those of the model that the round started
    from, while each client keeps its own (`local`); or new ones of the public images.
    """

    weights: Literal["samples", "uniform"] = "samples"
    learning_rate: Rate = 1.0
    server_optimizer: ServerOptimiser = ServerAverage(name="average")
    batch_norm: Literal["average", "local", "re_estimate"] = "average"

    @model_validator(mode="after")
    def _one_learning_rate(self) -> "Aggregation":
        if self.server_optimizer.name != "average" and self.learning_rate != 1.0:
            raise ValueError(
                f"learning_rate = {self.learning_rate}: must be 1 with server_optimizer = "
                f"{self.server_optimizer.name}, which has a learning_rate of its own"
            )
        return self


class Ensemble(Settings):
    """What is averaged over members: logits, or probabilities (after the softmax)."""

    average: Literal["logits", "probabilities"] = "logits"


class Clients(Ensemble):
    """All client models of the round, of all groups."""

    name: Literal["clients"]
    weights: Literal["uniform", "samples"] = "uniform"


class Aggregated(Ensemble):
    """The K averaged models of the last `checkpoints` rounds (temporal ensembling)."""

    name: Literal["aggregated"]
    checkpoints: Positive = 1


class Bayesian(Ensemble):
    """FedBE: the clients' models, the averaged one, and `samples` drawn from their distribution.

    `variant` is as the paper has the Gaussian, or as the released code does. `concentration` is
    that of the Dirichlet distribution of the clients' shares.
    """

    name: Literal["bayesian"]
    distribution: Literal["gaussian", "dirichlet"] = "gaussian"
    samples: Positive = 10
    variant: Literal["as_published", "as_released"] = "as_published"
    concentration: Rate = 1.0

    @model_validator(mode="after")
    def _fits_the_distribution(self) -> "Bayesian":
        if self.distribution == "gaussian" and self.concentration != 1.0:
            raise ValueError(
                f"concentration = {self.concentration}: only for distribution = dirichlet"
            )
        if self.distribution == "dirichlet" and self.variant != "as_published":
            raise ValueError(f"variant = {self.variant!r}: only for distribution = gaussian")
        return self


EnsembleTrainer = Annotated[Clients | Aggregated | Bayesian, _BY_NAME, _IN_SHORT]


class Basic(Settings):
    """Every global model is a student, after `warm_up` rounds without distillation."""

    name: Literal["basic"]
    warm_up: Count = 0


class Designated(Settings):
    """Only the main model is a student: the others stay diverse.

    It is that of group 0 or, where groups have different architectures, by choice that of the first
    group of each.
    """

    name: Literal["designated"]
    warm_up: Count = 0
    main: Literal["first", "per_architecture"] = "first"


GlobalTrainer = Annotated[Basic | Designated, _BY_NAME, _IN_SHORT]


class Numerics(Settings):
    """How numbers are computed; bytes are reproducible for one choice, not between choices.

    `precision` is that of convolutions and matrix products: bf16 by autocast, with weights, sums
    and losses in fp32, or tf32 of NVIDIA's GPUs. `compile` translates the loss and its gradient
    into code of their own. `logits` is how the members' logits are stored.
    """

    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    threads: Positive = 1
    precision: Literal["fp32", "bf16", "tf32"] = "fp32"
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    compile: bool = False
    logits: Literal["fp32", "fp16"] = "fp32"

    @model_validator(mode="after")
    def _tf32_needs_a_gpu(self) -> "Numerics":
        if self.precision == "tf32" and not self.device.startswith("cuda"):
            raise ValueError(
                f"precision = 'tf32' with device = {self.device!r}: only for device = cuda; "
                "take fp32 or bf16"
            )
        return self


# --- what is trained ------------------------------------------------------------------------------


class BoundClients(Settings):
    """So many clients that can have one architecture only, or any where none is named."""

    model: Model | None = None
    clients: Positive


class Line(Settings):
    """A training line: all that determines the weights of a federated run, and nothing else.

    Not in it: the number of rounds, what is evaluated, and how the work is scheduled. Where
    `global_models` does not divide `participants`, `remainder` goes to the groups from 0 on, one
    each, or to the main model's group. `architectures` are the models of groups 0 to K-1 where they
    are not all `model`, which is the main one's. `client_architectures` says from client 0 on to
    which of them clients are bound, who then take part in its groups only; all others in any.
    """

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    participants: Positive
    model: Model
    global_models: Positive = 1
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    client_architectures: Annotated[tuple[BoundClients, ...], Field(strict=False)] = ()
    remainder: Literal["spread", "main"] = "spread"
    local: LocalTrainer = FedAvg(name="fedavg")
    client: Client
    compression: Compression = Uncompressed(name="none")
    aggregation: Aggregation = Aggregation()
    ensemble: EnsembleTrainer | None = None
    global_trainer: GlobalTrainer | None = Field(default=None, alias="global")
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    on_divergence: Literal["stop", "drop"] = "stop"
    numerics: Numerics = Numerics()
    seed: int

    @model_validator(mode="after")
    def _consistent(self) -> "Line":
        if self.participants > self.clients:
            raise ValueError(
                f"participants = {self.participants}: at most clients = {self.clients}"
            )
        if self.participants < self.global_models:
            raise ValueError(
                f"participants = {self.participants}: at least global_models = "
                f"{self.global_models}, one for each group"
            )
        if self.client.batches == "continued" and self.participants != self.clients:
            raise ValueError(
                f"participants = {self.participants}: must be clients = {self.clients} with "
                "client.batches = continued, so that every client takes the steps of every round"
            )
        _check_samples(self, models_of(self))
        if self.architectures:
            self._check_architectures()
        if self.client_architectures:
            self._check_client_architectures()
        if self.global_trainer is not None:
            self._check_distillation()
        if re_estimates(self) and self.public.name == "held_out" and not self.data.held_out:
            raise ValueError(
                "data.held_out = 0: aggregation.batch_norm = re_estimate with public = held_out "
                "needs at least 1 sample"
            )
        if self.local.name == "scaffold" and (
            self.client.optimiser != "sgd" or self.client.momentum
        ):
            raise ValueError(
                "local = scaffold: needs client.optimiser = sgd and client.momentum = 0, because "
                "its control variates are mean gradients"
            )
        if self.local.name == "fednova" and self.client.optimiser != "sgd":
            raise ValueError(
                "local = fednova: needs client.optimiser = sgd, because it counts the gradients in "
                "a client's change"
            )
        return self

    def _check_architectures(self) -> None:
        if len(self.architectures) != self.global_models:
            raise ValueError(
                f"architectures: {len(self.architectures)} of them: must be global_models = "
                f"{self.global_models}, one for each group"
            )
        if self.architectures[0] != self.model:
            raise ValueError(
                f"architectures.0 = {self.architectures[0].name!r}: must be model, the main one's"
            )
        if self.local.name == "scaffold" and self.local.control == "shared":
            raise ValueError("local.control = 'shared': only without architectures")

    def _check_client_architectures(self) -> None:
        slots = _slots_of_models(self)
        bound: Counter[Model | None] = Counter()
        for i, part in enumerate(self.client_architectures):
            if part.model is not None and part.model not in slots:
                known = ", ".join(dict.fromkeys(repr(model.name) for model in slots))
                raise ValueError(
                    f"client_architectures.{i}.model = {part.model.name!r}: must be an "
                    f"architecture of the line, settings included: {known}"
                )
            bound[part.model] += part.clients
        if bound.total() > self.clients:
            raise ValueError(
                f"client_architectures: {bound.total()} clients: at most clients = {self.clients}"
            )
        unbound = self.clients - sum(bound[model] for model in slots)
        needed = unbound_needed(slots, bound)
        if unbound < needed:
            short = ", ".join(
                f"{wanted} slots for {model.name!r} and {bound[model]} clients bound to it"
                for model, wanted in slots.items()
                if wanted > bound[model]
            )
            raise ValueError(
                f"client_architectures: {unbound} clients are bound to none: must be at least "
                f"{needed}, because a round has {short}"
            )

    def _check_distillation(self) -> None:
        if self.ensemble is None:
            raise ValueError(
                "ensemble = null: global needs clients, aggregated or bayesian as its teacher"
            )
        if self.server is None:
            raise ValueError("server = null: global needs the server's distillation settings")
        if self.public.name == "held_out" and not self.data.held_out:
            raise ValueError("data.held_out = 0: public = held_out needs at least 1 sample")
        if self.server.drop_worst != "none":
            self._check_drop_worst(f"server.drop_worst = {self.server.drop_worst!r}")
        if needs_validation(self.server) and not self.data.server_validation:
            raise ValueError(
                "data.server_validation = 0: server.early_stopping and server.drop_worst need at "
                "least 1 sample"
            )
        if self.compression.name == "stc" and self.compression.downstream:
            raise ValueError(
                "compression.downstream = true: only without global, for a distilled model is not "
                "the old one with a sparse change; set it to false"
            )

    def _check_drop_worst(self, where: str) -> None:
        """Refuse what would make the average of who is kept another one than the aggregation's."""
        if self.ensemble is None or self.ensemble.name != "clients":
            raise ValueError(f"{where}: only for ensemble = clients, whose members it judges")
        how = self.aggregation
        if how.learning_rate != 1.0:
            raise ValueError(f"{where}: only for aggregation.learning_rate = 1")
        if how.server_optimizer.name != "average":
            raise ValueError(f"{where}: only for aggregation.server_optimizer = average")
        if self.local.name == "fednova":
            raise ValueError(f"{where}: not for local = fednova, which takes no plain average")
        if how.batch_norm != "average" and any(map(has_batch_norm, models_of(self))):
            raise ValueError(f"{where}: only for aggregation.batch_norm = average")


def _check_vocabulary(model: DistilBert, data: AgNews) -> None:
    if model.vocabulary < data.vocabulary_size:
        raise ValueError(
            f"model.vocabulary = {model.vocabulary}: must be at least data.vocabulary_size = "
            f"{data.vocabulary_size}, one for each token"
        )


def samples_of(data: Data) -> str:
    """Return what the samples of a data set are: ``images``, or another kind."""
    return KINDS_OF_SAMPLES.get(data.name, "images")


def _check_samples(line: "Line | OneShotLine", models: tuple[Model, ...]) -> None:
    """Refuse models and settings that the kind of the samples does not go with."""
    kind = samples_of(line.data)
    for model in models:
        allowed = SAMPLES_OF_MODELS.get(model.name, ("images",))
        if kind not in allowed:
            raise ValueError(
                f"model = {model.name!r}: takes {' or '.join(allowed)}, and the samples of "
                f"data = {line.data.name} are {kind}"
            )
        if model.name == "distilbert" and line.data.name == "ag_news":
            _check_vocabulary(model, line.data)
    only = f"only for images, and the samples of data = {line.data.name} are {kind}"
    if kind != "images" and line.numerics.memory_format != "contiguous":
        raise ValueError(f"numerics.memory_format = {line.numerics.memory_format!r}: {only}")
    for key, part in (("client", line.client), ("server", line.server)):
        if kind != "images" and part is not None and part.augmentation != "none":
            raise ValueError(f"{key}.augmentation = {part.augmentation!r}: {only}")


def needs_validation(server: Server) -> bool:
    """Whether a distillation reads the server's validation set."""
    return server.early_stopping is not None or server.drop_worst != "none"


def has_batch_norm(model: Model) -> bool:
    """Whether a model has running statistics of batch normalisation."""
    return getattr(model, "norm", "none") == "batch"


def re_estimates(line: Line) -> bool:
    """Whether running statistics are estimated anew, on public images, in every aggregation."""
    estimated = line.aggregation.batch_norm == "re_estimate"
    return estimated and any(map(has_batch_norm, models_of(line)))


def models_of(line: Line) -> tuple[Model, ...]:
    """Return the architectures of a line, the main one first, some perhaps several times."""
    return line.architectures or (line.model,)


def _slots_of_models(line: Line) -> dict[Model, int]:
    """Return how many slots of a round each architecture has."""
    slots: Counter[Model] = Counter()
    for group in range(line.global_models):
        model = line.architectures[group] if line.architectures else line.model
        slots[model] += len(slots_of(line.participants, line.global_models, line.remainder, group))
    return slots


class LocalLine(Settings):
    """Training without federation, to the end: each client alone, or all their data pooled.

    `client` states the whole length (for a comparison: rounds x local epochs). Of each client's
    samples, after those that validate, `aggregator_fraction` are not trained on: an aggregator is,
    in one-shot federated learning. `architectures` are the clients' models where they are not all
    `model`, in turn. With `initialisation` = ``own`` client n starts from weights of its own, those
    of the initial model of group n.
    """

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    aggregator_fraction: Fraction = 0.0
    pooled: bool = False
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    initialisation: Literal["common", "own"] = "common"
    client: Client
    numerics: Numerics = Numerics()
    seed: int


# --- one-shot federated learning ------------------------------------------------------------------


class Averaging(Settings):
    """The mean of the clients' logits (FedENS)."""

    name: Literal["averaging"]


class Weighted(Settings):
    """Each class of a client's logits weighted by its share of that class's samples (FedKD).

    A class that no client has counts as `unheld` says: the mean over clients, or 0.
    """

    name: Literal["weighted"]
    unheld: Literal["mean", "zero"] = "mean"


class Confidence(Settings):
    """Probabilities weighted, sample by sample, by their variance over classes (Fed-ET)."""

    name: Literal["confidence"]


class Linear(Settings):
    """One trained weight a client; as released with a bias for all classes, and all from 1."""

    name: Literal["linear"]
    variant: Literal["as_published", "as_released"] = "as_published"


class PerClass(Settings):
    """One trained weight a client and class."""

    name: Literal["per_class"]


class Mlp(Settings):
    """A network of `hidden` units on all clients' logits; the paper's equation has no `biases`."""

    name: Literal["mlp"]
    hidden: Positive = 40
    biases: bool = False


class Voting(Settings):
    """The decision of highest expected benefit, by how often clients vote what for which class.

    `estimate` says what a vote is that was never counted: ``smoothed`` (with `smoothing` more of
    each vote), impossible (``as_published``), or so where the class itself was seen
    (``as_released``). `prior` of the classes may be ``counted``, or a list. `benefit` is a row a
    decision and a column a truth; without it, 1 for what is right and 0 for what is not.
    """

    name: Literal["voting"]
    estimate: Literal["smoothed", "as_published", "as_released"] = "smoothed"
    smoothing: Rate = 1.0
    prior: (
        Literal["uniform", "counted"]
        | Annotated[tuple[Rate, ...], Field(strict=False, min_length=2)]
    ) = "uniform"
    benefit: (
        Annotated[
            tuple[Annotated[tuple[NonNegative, ...], Field(strict=False)], ...],
            Field(strict=False, min_length=2),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _square(self) -> "Voting":
        wrong = [row for row in self.benefit or () if len(row) != len(self.benefit or ())]
        if wrong:
            raise ValueError(
                f"benefit: a row of {len(wrong[0])} of {len(self.benefit or ())} rows: must be a "
                "row and a column for each class"
            )
        return self


class Moe(Settings):
    """Mixture of experts: a trained network that sees the image weighs the clients.

    Two blocks of a convolution and 2x2 max-pooling with `channels`, two linear layers of `hidden`
    units, and an output a client. The defaults are those of LeNet-5, as in the released code.
    """

    name: Literal["moe"]
    channels: Annotated[tuple[Positive, Positive], Field(strict=False)] = (6, 16)
    kernel: Positive = 5
    padding: Count = 0
    hidden: Annotated[tuple[Positive, Positive], Field(strict=False)] = (120, 84)
    output: Literal["softmax", "sigmoid"] = "softmax"


Aggregator = Annotated[
    Averaging | Weighted | Confidence | Linear | PerClass | Mlp | Voting | Moe, _BY_NAME, _IN_SHORT
]

#: Aggregators that are trained; of the others all is counted or given.
TRAINED_AGGREGATORS = ("linear", "per_class", "mlp", "moe")
#: Aggregators that read the clients' samples of role `aggregator`.
FITTED_AGGREGATORS = (*TRAINED_AGGREGATORS, "voting")


class AggregatorStopping(Settings):
    """Stop an aggregator after `patience` rounds (steps) without a better accuracy.

    It is measured after every `every`-th, on the clients' validation samples and on no others.
    """

    every: Positive = 10
    patience: Positive = 100
    on: Literal["validation"] = "validation"


class FederatedRounds(Settings):
    """FENS's phase 2: the clients train the aggregator in rounds, on their aggregator samples.

    Each of `participants` (by default all) takes `steps` steps of gradient descent from the
    server's aggregator; the server moves by the average of their changes, which `weights` weighs.
    """

    name: Literal["federated"]
    rounds: Positive
    participants: Positive | None = None
    steps: Positive = 1
    batch_size: Positive = 128
    learning_rate: Rate = 1.0
    server_optimizer: ServerOptimiser = ServerAdam(name="adam", learning_rate=0.001)
    weights: Literal["uniform", "samples"] = "uniform"
    early_stopping: AggregatorStopping | None = None


class ProxySet(Settings):
    """The server trains the aggregator alone, on its labelled set (`data.server_validation`)."""

    name: Literal["proxy"]
    steps: Positive
    batch_size: Positive = 128
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: Rate = 0.001
    early_stopping: AggregatorStopping | None = None


AggregatorTraining = Annotated[FederatedRounds | ProxySet, _BY_NAME, _IN_SHORT]


class KlTransfer(Settings):
    """A student learns the teacher's probabilities, with the temperature of `server`."""

    name: Literal["kl"]


class L1Transfer(Settings):
    """A student learns the teacher's logits: the mean absolute difference (FedKD)."""

    name: Literal["l1"]


class FedEtTransfer(Settings):
    """A student learns the teacher's class and, `diversity` times, what dissenters say (Fed-ET)."""

    name: Literal["fedet"]
    diversity: NonNegative = 0.05


Transfer = Annotated[KlTransfer | L1Transfer | FedEtTransfer, _BY_NAME, _IN_SHORT]


class OneShot(Settings):
    """What a one-shot run has beside the settings that it shares with federated ones.

    `aggregator_fraction` of each client's samples are for the aggregator. `local_fraction` is the
    share that the clients' models are trained on: the others (null), or all (1), with which an
    aggregator can only be one that needs no samples. The models and data of the clients in `forget`
    are left out of the aggregator. With a `distillation` it is a `student` (by default of the
    architecture of `model`) that predicts, whom the aggregator has taught on the public images.
    """

    aggregator_fraction: Fraction = 0.0
    local_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    initialisation: Literal["common", "own"] = "common"
    aggregator: Aggregator = Averaging(name="averaging")
    aggregator_training: AggregatorTraining | None = None
    forget: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    distillation: Transfer | None = None
    student: Model | None = None


class OneShotLine(OneShot):
    """One-shot federated learning: all that determines what it predicts in the end."""

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    client: Client
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    numerics: Numerics = Numerics()
    seed: int

    @model_validator(mode="after")
    def _consistent(self) -> "OneShotLine":
        _check_samples(self, (*(self.architectures or (self.model,)), self.student or self.model))
        if self.aggregator.name == "moe" and samples_of(self.data) != "images":
            raise ValueError(
                "aggregator = 'moe': sees images, and the samples of data = "
                f"{self.data.name} are {samples_of(self.data)}"
            )
        self._check_fractions()
        self._check_forgotten()
        if self.aggregator.name in FITTED_AGGREGATORS:
            self._check_fit()
        if self.distillation is not None:
            self._check_distillation()
        return self

    def _check_fractions(self) -> None:
        rest = round(1 - self.aggregator_fraction, 9)
        if self.local_fraction not in (None, 1.0, rest):
            raise ValueError(
                f"local_fraction = {self.local_fraction}: must be 1 (all samples) or "
                f"1 - aggregator_fraction = {rest}"
            )

    def _check_forgotten(self) -> None:
        for client in self.forget:
            if client >= self.clients:
                raise ValueError(
                    f"forget = {list(self.forget)}: at most {self.clients - 1}, the last of "
                    f"clients = {self.clients}"
                )
        if len(set(self.forget)) == self.clients:
            raise ValueError(f"forget = {list(self.forget)}: at least 1 client must stay")

    def _check_fit(self) -> None:
        """Refuse an aggregator that has nothing to learn from, or what clients were trained on."""
        where = f"aggregator = {self.aggregator.name!r}"
        training = self.aggregator_training
        if self.aggregator.name in TRAINED_AGGREGATORS and training is None:
            raise ValueError(f"aggregator_training = null: {where} needs federated or proxy")
        if self.aggregator.name in TRAINED_AGGREGATORS and training is not None:
            self._check_training(training)
        if training is not None and training.name == "proxy" and self.aggregator.name != "voting":
            if not self.data.server_validation:
                raise ValueError(
                    "data.server_validation = 0: aggregator_training = proxy needs at least 1 "
                    "sample"
                )
            return
        if not self.aggregator_fraction or self.local_fraction == 1.0:
            raise ValueError(
                f"aggregator_fraction = {self.aggregator_fraction}, local_fraction = "
                f"{self.local_fraction}: {where} needs samples that no client's model was trained "
                "on; set aggregator_fraction above 0 and local_fraction to null"
            )

    def _check_distillation(self) -> None:
        if self.server is None:
            raise ValueError("server = null: distillation needs the server's settings")
        if self.public.name == "held_out" and not self.data.held_out:
            raise ValueError("data.held_out = 0: public = held_out needs at least 1 sample")
        if self.server.drop_worst != "none":
            raise ValueError(
                f"server.drop_worst = {self.server.drop_worst!r}: only for federated training"
            )
        if self.server.early_stopping is not None and not self.data.server_validation:
            raise ValueError(
                "data.server_validation = 0: server.early_stopping needs at least 1 sample"
            )

    def _check_training(self, training: FederatedRounds | ProxySet) -> None:
        left = self.clients - len(set(self.forget))
        if training.name == "federated" and (training.participants or 1) > left:
            raise ValueError(
                f"aggregator_training.participants = {training.participants}: at most {left}, the "
                "clients that are not forgotten"
            )
        if training.early_stopping is not None and not self.validation:
            raise ValueError("validation = 0: aggregator_training.early_stopping needs more than 0")


class GlobalModel(Settings):
    """Evaluate w*_{t,0}, the main global model."""

    name: Literal["global_model"]


Evaluated = Annotated[GlobalModel | Clients | Aggregated | Bayesian, _BY_NAME, _IN_SHORT]
#: What is evaluated on: the test samples, the same as each client would prepare its own of them, or
#: the training samples that nobody trains on.
Role = Literal["test", "test_own", "validation"]
