"""What each stage reads: the files of a job, by the options of its command.

In a plan the files are paths as text; in a running stage they are `pathlib.Path`. A list may be
empty, and an absent file is None. One file because each class is a list of names, which plans and
stages both import.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar, dataclass_transform

P = TypeVar("P")


@dataclass_transform(eq_default=False)
@dataclass
class Inputs(Generic[P]):
    """The files that a stage reads; each class of them is a dataclass."""

    def __init_subclass__(cls) -> None:
        """Make a dataclass of each class of inputs."""
        dataclass(eq=False, repr=False)(cls)


class ClientsInputs(Inputs[P]):
    """Samples of clients, and the files that are read with them."""

    data: P  # the data set, from which a stage takes the samples of some clients and roles
    info: P  # of this data set; other images are normalised by it, too
    clients: P  # the partition


class SamplesInputs(Inputs[P]):
    """Samples of clients with one role, or a data set as a whole."""

    data: P
    info: P  # of the clients' data, by which public images are normalised, too
    clients: P | None  # the partition, where the samples are of a role


class ScoredInputs(ClientsInputs[P]):
    """Samples on which models are scored."""

    histogram: P


class PublicInputs(Inputs[P]):
    """Public samples."""

    public: P
    info: P  # of the clients' data


class StudentInputs(PublicInputs[P]):
    """A model that learns from public samples."""

    start: P
    data: P | None  # clients' samples and their table, if public samples may be among them
    clients: P | None


class DistilledInputs(StudentInputs[P]):
    """A model that learns from predictions on public samples."""

    server_validation: P | None  # labelled images of the server, if students are scored on them


class DatasetInputs(Inputs[P]):
    """The list of a data set's raw files with their digests, if it has any."""

    raw: P | None


class FeaturesInputs(DatasetInputs[P]):
    """The files of a data set whose samples are encoded; of raw files, the encoder's weights."""

    train: P
    test: P
    held_out: P
    server_validation: P
    test_own: P
    info: P


class PartitionInputs(Inputs[P]):
    """The samples that are divided, and those whose classes they should have."""

    train: P
    test: P
    info: P
    raw: P | None  # the digest of a table of others, if the partition is one


class ParticipationInputs(Inputs[P]):
    """The files by which participants are drawn."""

    histogram: P | None  # the label counts of clients, if they are drawn by samples


class InitialModelInputs(Inputs[P]):
    """The files that determine the shape and the classes of a model."""

    info: P


class LocalTrainingInputs(ClientsInputs[P]):
    """What a participant trains from; if it starts from w*_{b,k}, the files after round b."""

    participation: P
    start: P
    state: list[P]  # round state of its group
    received_logits: list[P]  # of the participants on public samples, where clients exchange them
    public: P | None
    server_model: P | None  # where clients exchange features, or learn from the server's model
    history: list[P]  # the last global models, where clients learn from them, in order of rounds
    server_validation: P | None  # the server's labelled images, where losses on them count


class AdvertiseInputs(Inputs[P]):
    """The file that identifies the owner of a participant's keys."""

    participation: P


class ShareInputs(Inputs[P]):
    """What a participant needs to share its secrets."""

    private: P  # its own secrets
    public_keys: list[P]  # of all participants of its group, as in all steps


class MaskedInputInputs(ShareInputs[P]):
    """What a participant masks, and the keys for it."""

    info: P
    own_update: P
    start: P  # w*_{t-1,k}
    shares: list[P]


class UnmaskInputs(ShareInputs[P]):
    """The request to a participant, and the shares that it was given."""

    shares: list[P]
    receipts: list[P]


class ClientStateInputs(Inputs[P]):
    """What participants keep with secure aggregation, each from its own update."""

    state: P | None  # what the group's clients have kept until the round before
    own_updates: list[P]
    receipts: list[P]


class AggregationInputs(Inputs[P]):
    """What w_{t,k} is averaged from."""

    info: P
    start: P  # w*_{t-1,k}
    updates: list[P]  # none with secure aggregation
    others: list[P]  # updates of other groups, where the server learns something from all
    public_keys: list[P]  # with secure aggregation: what participants send in its steps
    vectors: list[P]
    revealed: list[P]
    bases: list[P]  # the model that each update started from, where stale ones count by changes
    state: P | None  # the group's own, of the round before
    public: P | None  # for running statistics, or to count the logits that clients exchange


class HeadSharingInputs(Inputs[P]):
    """A model, and the models or updates whose heads it takes."""

    model: P
    heads: list[P]


class FeatureTrainingInputs(ClientsInputs[P]):
    """What the server's model learns from: all participants' models and samples (FedGKT).

    The features that a client would send are computed from these, where they are needed.
    """

    start: P
    updates: list[P]  # of all groups


class LogitsInputs(SamplesInputs[P]):
    """What the logits of an ensemble's members are computed from."""

    models: list[P]  # the members, or the updates whose distribution they are drawn from
    aggregated: P | None  # w_{t,k}, for drawn members, and for parts that are not clients' own
    start: P | None  # of the round, if the distribution is about it
    server_model: P | None  # where it goes on from the members


class CachedLabelsInputs(Inputs[P]):
    """What labels of public samples are made from."""

    logits: list[P]  # of the round's participants, of all groups
    before: P | None  # the labels after the round before


class DistillationInputs(DistilledInputs[P]):
    """What w*_{t,k} is distilled from: the teacher's members."""

    members: list[P]  # which compute logits of the images that the student sees, or feature maps
    logits: list[P]  # on the public images, unless they are computed
    odds: P | None  # log odds [clients, n] on the public images, by which votes are weighted


class LabelDistillationInputs(DistilledInputs[P]):
    """What w*_{t,k} is distilled from: labels that are kept of the public samples."""

    labels: P


class JudgedDistillationInputs(StudentInputs[P]):
    """What w*_{t,k} is distilled from where the worst clients are left out."""

    server_validation: P
    members: list[P]  # and logits, as of `DistillationInputs`
    logits: list[P]
    judged: list[P]  # the logits of all clients on the server's labelled images
    updates: list[P]  # of the group, which are averaged again


class DataFreeDistillationInputs(Inputs[P]):
    """What w*_{t,k} is distilled from where the server generates the images."""

    info: P
    start: P
    members: list[P]
    participants: list[P]  # of the groups whose averages are members
    histogram: P  # the clients' label counts
    generator: P | None  # as the student of an earlier round has left it


class SelectedLabelsInputs(StudentInputs[P]):
    """The files by which the server's model selects its labels."""

    logits: list[P]  # of the round's participants, of all groups
    before: P | None  # the labels of the round before


class ClientDiscriminatorInputs(ClientsInputs[P]):
    """What a client learns to distinguish: its own samples, and images of the generator."""

    generator: P


class ClientOddsInputs(PublicInputs[P]):
    """What the odds of all clients on the public images are computed from."""

    discriminators: list[P]


class EvaluationInputs(ScoredInputs[P]):
    """What the scores of global models, or of an ensemble, are computed from."""

    models: list[P]  # w*_{t,0} of the evaluated rounds, or the logits of the ensemble's members
    participants: list[P]  # of every group of the evaluated rounds


class RetentionInputs(ClientsInputs[P]):
    """What forgetting is measured from."""

    models: list[P]  # the main model after each round, its start included
    test: P
    participants: list[P]  # of all groups, on whose samples models are scored


class ClientAccuracyInputs(ScoredInputs[P]):
    """What the accuracies of the last main model by client and class are computed from."""

    model: P
    test: P


class LocalModelInputs(SamplesInputs[P]):
    """What a client, or the only model, is trained from: no partition for the server's core."""

    start: P


class QuantisedModelInputs(ClientsInputs[P]):
    """What a client's model is quantised from."""

    model: P


class ClientLogitsInputs(SamplesInputs[P]):
    """What the logits of a model, with its quantisation, are computed from."""

    model: P


class LocalEvaluationInputs(ScoredInputs[P]):
    """What the scores of models, with their quantisation, are computed from."""

    models: list[P]  # one a client, in the order of clients, or a single one


class GeneratedInputs(Inputs[P]):
    """The files that images are generated with."""

    info: P
    generators: list[P]  # of the members, in the order of clients


class SynthesisedInputs(Inputs[P]):
    """What the server generates images against, and what the student starts from."""

    info: P
    models: list[P]  # of the members, in the order of clients
    start: P


class AggregatorInputs(Inputs[P]):
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


class FeatureMomentsInputs(ClientsInputs[P]):
    """What a client measures: its samples, through all layers of a model but the last."""

    start: P  # the model, which all clients have


class ClosedFormModelInputs(Inputs[P]):
    """What a model with a head of moments is made from."""

    moments: list[P]  # of the members, in the order of clients
    start: P


class DistilledModelInputs(DistilledInputs[P]):
    """What a student of a one-shot ensemble learns from: its predictions, or labels alone."""

    aggregator: P | None
    logits: list[P]  # of the members, on the public images


class OneShotEvaluationInputs(ScoredInputs[P]):
    """What the score of an aggregator, or of a student in its place, is computed from."""

    student: P | None
    aggregator: P | None
    snapshots: P | None  # the aggregator during its training
    logits: list[P]  # of its members, on the samples of the role
    rounds: list[P]  # the bytes that clients sent and received
