"""The registry of stages: names, outputs, and hardware needs."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

#: The kind of line that a stage reads.
LineKind = Literal["federated", "local", "one_shot"]


@dataclass(frozen=True)
class Stage:
    """A stage: a Snakemake rule, a subcommand and a function, all of one name."""

    about: str  # for `fedstage --help`
    outputs: tuple[str, ...] = ()  # the options that name output files; other paths are read
    line: LineKind | None = None  # the kind of line that it reads, if any
    on_device: bool = False  # whether it computes on the device of its settings
    batches: tuple[str, ...] = ()  # settings whose batch size decides how much memory it needs
    several: bool = False  # whether it trains several clients, which may share a GPU
    calls: tuple[str, ...] = ()  # the stages that it calls, whose files carry its fingerprint
    presents: bool = False  # whether it draws or tabulates results, of which a run has few
    about_plan: bool = False  # whether its results are about the DAG, and so depend on `plan`


_federated = partial(Stage, line="federated", on_device=True)
_local = partial(Stage, outputs=("output",), line="local", on_device=True)
_one_shot = partial(Stage, line="one_shot", on_device=True)
_result = partial(Stage, presents=True)
_of_plan = partial(_result, about_plan=True)
_TABLE = ("csv", "parquet", "markdown", "html")

STAGES: dict[str, Stage] = {
    # settings and data
    "line": Stage("write the settings of a line where its stages read them", ("output",)),
    "dataset": Stage(
        "read a data set into arrays: train, test, held out",
        ("train", "test", "held_out", "server_validation", "test_own", "info"),
    ),
    "partition": Stage(
        "divide the training samples over clients and roles", ("output", "histogram")
    ),
    "core": Stage("write the labelled samples that the server has of its own", ("output",)),
    "participation": Stage("draw the client of each slot of a round", ("output",)),
    "initial_model": Stage("draw the weights that a global model starts from", ("output",)),
    # a round
    "local_training": _federated(
        "train participants of a round from their group's global model",
        ("outputs",),
        batches=("client",),
        several=True,
    ),
    "aggregation": _federated(
        "average the updates of a group", ("output", "participants", "new_state")
    ),
    "logits": _federated("compute the logits of ensemble members on a data set", ("output",)),
    "distillation": _federated(
        "teach a group's averaged model with an ensemble's logits",
        ("output", "new_generator"),
        batches=("server",),
    ),
    "feature_training": _federated(
        "train the server's model on features of the participants' samples",
        ("output",),
        batches=("server",),
    ),
    "head_transfer": Stage(
        "give a model the mean of other models' heads", ("output",), line="federated"
    ),
    "cached_labels": Stage(
        "keep what an ensemble says of public samples for later rounds",
        ("output",),
        line="federated",
    ),
    "selected_labels": _federated(
        "select what the server's model learns of each public sample", ("output",)
    ),
    # discriminators, by whose odds votes are weighted
    "public_generator": _federated(
        "train the server's generator on public images", ("output", "picture")
    ),
    "client_discriminator": _federated(
        "train a client to tell its images from the generator's", ("output",)
    ),
    "client_odds": _federated("compute the odds that public images are each client's", ("output",)),
    # several rounds
    "segment": _federated(
        "call the stages of several rounds of a group in one process",
        batches=("client", "server"),
        several=True,
        calls=(
            "local_training",
            "aggregation",
            "distillation",
            "feature_training",
            "head_transfer",
            "cached_labels",
            "selected_labels",
        ),
    ),
    "logits_segment": _federated(
        "compute the logits of several rounds in one process", calls=("logits",)
    ),
    # models that are trained to the end
    "local_model": _local(
        "train a client, the pooled data, or the server's core, to the end", batches=("client",)
    ),
    "quantised_model": _local("quantise the model of a client, calibrated on its own samples"),
    "client_logits": _local("compute the logits of a model that a client has trained to the end"),
    "aggregator": _one_shot(
        "train or count what combines the logits of clients' models",
        ("output", "snapshots", "rounds"),
    ),
    "distilled_model": _one_shot(
        "teach a model with a one-shot ensemble's logits", ("output",), batches=("server",)
    ),
    # heads without training
    "feature_moments": _one_shot("measure the features of a client's samples", ("output",)),
    "closed_form_model": Stage(
        "compute a model's last layer from moments of clients' features",
        ("output", "rounds"),
        line="one_shot",
    ),
    # images that are generated
    "client_generator": _one_shot("train a client's generator of images", ("output",)),
    "generated": _one_shot(
        "generate images with the clients' generators", ("output", "histogram", "picture", "rounds")
    ),
    "synthesised": _one_shot(
        "generate images against an ensemble, and teach a student with them",
        ("output", "histogram", "picture", "student", "weights"),
        batches=("server",),
    ),
    # scores
    "evaluation": _federated("score a line's global models or ensembles, all rounds", ("output",)),
    "retention": _federated(
        "measure what a line's main model forgets from round to round", ("output", "right")
    ),
    "client_accuracy": _federated(
        "score a line's main model for each client and each class", ("output",)
    ),
    "local_evaluation": _local("score models that were trained without federation"),
    "one_shot_evaluation": _one_shot(
        "score one-shot federated learning", ("output", "over_rounds")
    ),
    "choice": Stage(
        "take the candidate that is most accurate on validation samples", ("output", "chosen")
    ),
    # results
    "tables": _result("put the metrics of an experiment into a table", (*_TABLE, "latex")),
    "figures": _result(
        "draw accuracy over rounds, and the partition", ("accuracy", "partition", "samples")
    ),
    "comparison": _result("draw measured against published accuracy", ("figure",)),
    "sweep": _result("draw accuracy over the values of an axis", ("figure",)),
    "claims": _result("judge a paper's claims by the metrics of an experiment", _TABLE),
    "communication": _of_plan(
        "add up what clients send and receive, and draw accuracy against it",
        ("csv", "parquet", "by_run", "markdown", "html", "figure"),
    ),
    "costs": _of_plan(
        "put accuracy, bytes, seconds and memory of each method into a table",
        ("csv", "parquet", "markdown", "html", "figure"),
    ),
    "properties": _of_plan("compute properties of methods from their edges", ("markdown", "csv")),
    "simulation": _of_plan(
        "simulate when the jobs of rounds run on clients and a server",
        ("markdown", "csv", "jobs", "figure"),
    ),
    "round_times": _of_plan(
        "put the seconds of a round's jobs into a table", ("markdown", "csv", "parquet", "by_run")
    ),
    "retention_summary": _result(
        "put what methods forget into a table, and draw it",
        (*_TABLE, "by_run", "overlap", "curves", "venn"),
    ),
    "clients": _result(
        "put the accuracies of clients and classes into a table", ("csv", "markdown")
    ),
    "report": _result(
        "show table, curves, partition, claims and their origin in one HTML file", ("output",)
    ),
    "forgetting": _result(
        "list what still contains clients that aggregators have forgotten", ("markdown", "csv")
    ),
}
