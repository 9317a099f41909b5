"""What each stage reads: the files of a job, by the options of its command.

In a plan they are paths as text, where the stage runs `pathlib.Path`. A list may be empty, and a
file that may be absent is None. One file because each class is a list of names, which plans and
stages both import.
"""

from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


class DatasetInputs(NamedTuple, Generic[P]):
    """No file of the graph: raw files have no part in it."""


class PartitionInputs(NamedTuple, Generic[P]):
    """What is divided."""

    train: P


class CoreInputs(NamedTuple, Generic[P]):
    """What the server's own samples are taken from."""

    data: P
    clients: P
    info: P


class ParticipationInputs(NamedTuple, Generic[P]):
    """What participants are drawn by."""

    histogram: P | None  # the label counts of clients, whose samples count; none if all are alike


class InitialModelInputs(NamedTuple, Generic[P]):
    """What the shape and the classes of a model follow from."""

    info: P


class LocalTrainingInputs(NamedTuple, Generic[P]):
    """What a participant trains from; if it starts from w*_{b,k}, what was there after round b."""

    data: P
    info: P
    clients: P
    participation: P
    start: P
    state: list[P]  # round state of its group, or of all groups with shared control variates
    received_logits: list[P]  # of the participants on public samples, where clients exchange them
    public: P | None
    server_model: P | None  # where clients exchange features, or learn from the server's model
    history: list[P]  # the last global models, where clients learn from them, in order of rounds
    server_validation: P | None  # the server's labelled images, where losses on them count


class AggregationInputs(NamedTuple, Generic[P]):
    """What w_{t,k} is averaged from."""

    info: P
    start: P  # w*_{t-1,k}
    updates: list[P]
    bases: list[P]  # the model that each update started from, where stale ones count by changes
    state: P | None  # the group's own, of the round before
    public: P | None  # for running statistics, or to count the logits that clients exchange


class HeadSharingInputs(NamedTuple, Generic[P]):
    """A model, and the models or updates whose heads it takes."""

    model: P
    heads: list[P]


class FeatureTrainingInputs(NamedTuple, Generic[P]):
    """What the server's model learns from: all participants' models and samples (FedGKT).

    The features that a client would send are computed from these, where they are needed.
    """

    info: P
    start: P
    updates: list[P]  # of all groups
    data: P
    clients: P


class LogitsInputs(NamedTuple, Generic[P]):
    """What the logits of an ensemble's members are computed from."""

    models: list[P]  # the members, or the updates whose distribution they are drawn from
    aggregated: P | None  # w_{t,k}, for drawn members
    start: P | None  # of the round, if the distribution is about it
    server_model: P | None  # where it goes on from the members
    data: P
    info: P  # of the clients' data, by which public images are normalised, too
    clients: P | None  # the partition, to take only the samples of the validation role


class CachedLabelsInputs(NamedTuple, Generic[P]):
    """What labels of public samples are made of."""

    logits: list[P]  # of the round's participants, of all groups
    before: P | None  # the labels after the round before


class DistillationInputs(NamedTuple, Generic[P]):
    """What w*_{t,k} is distilled from: the logits of the teacher's members on public images."""

    info: P
    start: P
    public: P
    server_validation: P | None  # labelled images of the server, if students are scored on them
    logits: list[P]
    odds: P | None  # log odds [clients, n] on the public images, by which votes are weighted


class LabelDistillationInputs(NamedTuple, Generic[P]):
    """What w*_{t,k} is distilled from: labels that are kept of the public samples."""

    info: P
    start: P
    public: P
    server_validation: P | None
    labels: P


class LiveDistillationInputs(NamedTuple, Generic[P]):
    """What w*_{t,k} is distilled from: the teacher's members themselves."""

    info: P
    start: P
    public: P
    server_validation: P | None
    members: list[P]  # which compute logits of the images that the student sees, or feature maps
    logits: list[P]  # on the public images, unless they are computed


class JudgedDistillationInputs(NamedTuple, Generic[P]):
    """What w*_{t,k} is distilled from where the worst clients are left out."""

    info: P
    start: P
    public: P
    server_validation: P
    logits: list[P]
    judged: list[P]  # the logits of all clients on the server's labelled images
    updates: list[P]  # of the group, which are averaged again


class DataFreeDistillationInputs(NamedTuple, Generic[P]):
    """What w*_{t,k} is distilled from where the server generates the images."""

    info: P
    start: P
    members: list[P]
    histogram: P  # the clients' label counts
    generator: P | None  # as the student of an earlier round has left it


class SelectedLabelsInputs(NamedTuple, Generic[P]):
    """What the server's model selects its labels by."""

    info: P
    start: P  # the server's model before its distillation
    logits: list[P]  # of the round's participants, of all groups
    public: P  # labelled
    before: P | None  # the labels of the round before


class PublicGeneratorInputs(NamedTuple, Generic[P]):
    """What the server trains its generator on."""

    public: P
    info: P


class ClientDiscriminatorInputs(NamedTuple, Generic[P]):
    """What a client tells apart: its own samples, and images of the generator."""

    generator: P
    data: P
    clients: P
    info: P


class ClientOddsInputs(NamedTuple, Generic[P]):
    """What the odds of all clients on the public images are computed from."""

    discriminators: list[P]
    public: P
    info: P


class EvaluationInputs(NamedTuple, Generic[P]):
    """What the scores of global models, or of an ensemble, are computed from."""

    models: list[P]  # w*_{t,0} of the evaluated rounds, or the logits of the ensemble's members
    data: P
    info: P
    clients: P
    histogram: P
    participants: list[P]  # of every group of the evaluated rounds


class RetentionInputs(NamedTuple, Generic[P]):
    """What is measured of forgetting."""

    models: list[P]  # the main model after each round, its start included
    data: P
    test: P
    info: P
    clients: P
    participants: list[P]  # of all groups, on whose samples models are scored


class ClientAccuracyInputs(NamedTuple, Generic[P]):
    """What the accuracies of the last main model by client and class are computed from."""

    model: P
    data: P  # training samples, some of them for validation
    test: P
    info: P
    clients: P
    histogram: P


class LocalModelInputs(NamedTuple, Generic[P]):
    """What a client, or the only model, is trained from."""

    data: P
    info: P
    clients: P | None  # the partition; none where `data` is the server's core
    start: P


class QuantisedModelInputs(NamedTuple, Generic[P]):
    """What a client's model is quantised from."""

    recipe: P
    model: P
    data: P
    info: P
    clients: P  # the partition, which has the client's own samples


class ClientLogitsInputs(NamedTuple, Generic[P]):
    """What the logits of a model, with its quantisation, are computed from."""

    recipe: P
    model: P
    data: P
    info: P  # of the clients' data, by which public images are normalised, too
    clients: P | None  # the partition, where the samples are of a role


class LocalEvaluationInputs(NamedTuple, Generic[P]):
    """What the scores of models, with their quantisation, are computed from."""

    recipe: P
    models: list[P]  # one a client, in the order of clients, or a single one
    data: P
    info: P
    clients: P
    histogram: P


class ClientGeneratorInputs(NamedTuple, Generic[P]):
    """What a client's generator is trained on."""

    data: P
    info: P
    clients: P


class GeneratedInputs(NamedTuple, Generic[P]):
    """What images are generated with."""

    info: P
    generators: list[P]  # of the members, in the order of clients


class SynthesisedInputs(NamedTuple, Generic[P]):
    """What the server generates images against, and what the student starts from."""

    info: P
    models: list[P]  # of the members, in the order of clients
    start: P


class AggregatorInputs(NamedTuple, Generic[P]):
    """What an aggregator is made from; nothing of clients that are forgotten is used."""

    models: list[P]  # of the members, in the order of clients: their sizes and prototypes count
    quantised: list[P]  # where these predict
    logits: list[P]  # of the members, on the samples that the aggregator is fitted to
    data: P | None  # these samples: the clients' of the role `aggregator`, or the server's
    validation_logits: list[P]  # the same on validation samples, where training stops by them
    validation: P | None
    clients: P
    histogram: P
    info: P


class FeatureMomentsInputs(NamedTuple, Generic[P]):
    """What a client measures: its samples, through all layers of a model but the last."""

    data: P
    clients: P
    start: P  # the model, which all clients have
    info: P


class ClosedFormModelInputs(NamedTuple, Generic[P]):
    """What a model with a head of moments is made of."""

    moments: list[P]  # of the members, in the order of clients
    start: P


class DistilledModelInputs(NamedTuple, Generic[P]):
    """What a student of a one-shot ensemble learns from: its predictions, or labels alone."""

    info: P
    aggregator: P | None
    logits: list[P]  # of the members, on the public images
    start: P
    public: P
    server_validation: P | None  # the server's labelled images, if they stop the training


class OneShotEvaluationInputs(NamedTuple, Generic[P]):
    """What the score of an aggregator, or of a student in its place, is computed from."""

    student: P | None
    aggregator: P | None
    snapshots: P | None  # the aggregator during its training
    logits: list[P]  # of its members, on the samples of the role
    data: P
    info: P
    clients: P
    histogram: P
    rounds: list[P]  # the bytes that clients sent and received
