"""The stages: one file, one function, one `fedstage` subcommand and one Snakemake rule of one name.

A stage function takes keyword arguments only: paths of its inputs and outputs, and the numbers that
say which of the many files of its kind it makes. It reads, calls pure functions, and writes.
"""

#: Subcommand -> what it does, for `fedstage --help` (which must not import torch).
STAGES = {
    "line": "write the settings of a training line where its stages read them",
    "dataset": "read a data set into arrays: train, test, held out",
    "partition": "divide the training samples over clients and roles",
    "participation": "draw which client each slot of a round is",
    "initial_model": "draw the weights that a global model starts from",
    "local_training": "train one participant from its group's global model",
    "cohort": "train several participants of a group in one process",
    "aggregation": "average the updates of a group",
    "logits": "compute the logits of ensemble members on a data set",
    "distillation": "teach a group's averaged model with an ensemble's logits",
    "segment": "call the stages of several rounds of a group in one process",
    "logits_segment": "compute the logits of several rounds in one process",
    "evaluation": "score a line's global models or ensembles, all rounds",
    "local_model": "train one client alone, or the pooled data, to the end",
    "local_evaluation": "score models that were trained without federation",
    "quantised_model": "quantise the model of a client, calibrated on its own samples",
    "client_logits": "compute the logits of a model that a client has trained to the end",
    "aggregator": "train or count what combines the logits of clients' models",
    "distilled_model": "teach a model with a one-shot ensemble's logits",
    "one_shot_evaluation": "score what one-shot federated learning predicts",
    "forgetting": "list what still contains clients that aggregators have forgotten",
    "choice": "take the candidate that is most accurate on validation samples",
    "tables": "put the metrics of an experiment into a table",
    "figures": "draw accuracy over rounds, and the partition",
    "comparison": "draw measured against published accuracy",
    "sweep": "draw accuracy over the values of an axis",
    "communication": "add up what clients send and receive, and draw accuracy against it",
    "claims": "judge a paper's claims by the metrics of an experiment",
    "properties": "compute properties of methods from their edges",
    "simulation": "simulate when the jobs of rounds run on clients and a server",
    "round_times": "put the seconds that a round's jobs took into a table",
}

#: The stages that compute on the device which the settings name, aggregations only where they
#: estimate running statistics anew; the others need no GPU.
ON_DEVICE = frozenset(
    {
        "local_training",
        "cohort",
        "aggregation",
        "logits",
        "distillation",
        "segment",
        "logits_segment",
        "evaluation",
        "local_model",
        "local_evaluation",
        "quantised_model",
        "client_logits",
        "aggregator",
        "distilled_model",
        "one_shot_evaluation",
    }
)
