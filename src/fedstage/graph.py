"""Where every file of a line is, and which files each stage reads: the edges of the DAG.

Notation of FedSDD: round t = 1..T, group (global model) k = 0..K-1; w_{t,k} is the aggregated
model, w*_{t,k} the global model that round t+1 starts from (distilled if the group is a student).
Only standard library and settings here: the Snakefile reads this at every call.
"""

from functools import cache

from fedstage.config import (
    Clients,
    Data,
    EnsembleTrainer,
    HeldOut,
    Line,
    LocalLine,
    Model,
    re_estimates,
)
from fedstage.lines import (
    data_id,
    group_slots,
    initial_id,
    is_distilled,
    keeps_state,
    line_id,
    local_id,
    normalised,
    owner,
    participation_id,
    partition_id,
    shares_control,
)
from fedstage.rounds import block_of

RESULTS = "results"


# --- data -----------------------------------------------------------------------------------------


def data_file(data: Data, part: str) -> str:
    """Return a data set's file: part is train, test, held_out (.safetensors) or info (.json)."""
    suffix = "json" if part == "info" else "safetensors"
    return f"{RESULTS}/data/{data_id(data)}/{part}.{suffix}"


def clients_table(line: Line | LocalLine) -> str:
    """Return the partition: a row a sample with its client and role."""
    return f"{RESULTS}/partitions/{partition_id(line)}/clients.parquet"


def label_histogram(line: Line | LocalLine) -> str:
    """Return the label counts of every client and role."""
    return f"{RESULTS}/partitions/{partition_id(line)}/label_histogram.parquet"


def participation_table(line: Line, round: int) -> str:
    """Return the table that says which client each slot of `round` is."""
    first, last = block_of(round)
    plan = participation_id(line)
    return f"{RESULTS}/participation/{plan}/rounds_{first:04d}-{last:04d}.parquet"


def evaluation_data(line: Line | LocalLine, role: str) -> str:
    """Return the images and labels that a role is evaluated on."""
    return data_file(line.data, "test" if role == "test" else "train")


# --- a round --------------------------------------------------------------------------------------


def line_folder(line: Line) -> str:
    """Return the folder of a training line."""
    return f"{RESULTS}/training/{line_id(normalised(line))}"


def line_file(line: Line) -> str:
    """Return the file of the line's settings."""
    return f"{line_folder(line)}/line.yaml"


@cache  # asked for hundreds of thousands of times while a large graph is built
def round_folder(line: Line, round: int, group: int) -> str:
    """Return the folder of what is made in a round and group, in the line that owns it."""
    return f"{line_folder(owner(line, round, group))}/round_{round:04d}/group_{group}"


def updates(line: Line, round: int, group: int) -> list[str]:
    """Return the updates of a group's participants, in the order of their slots."""
    folder = round_folder(line, round, group)
    return [f"{folder}/slot_{slot}.safetensors" for slot in group_slots(line, group)]


def aggregated_model(line: Line, round: int, group: int) -> str:
    """Return w_{t,k}."""
    return f"{round_folder(line, round, group)}/aggregated.safetensors"


def participants_table(line: Line, round: int, group: int) -> str:
    """Return the group's participants of the round, with samples, loss and bytes."""
    return f"{round_folder(line, round, group)}/participants.parquet"


def round_state(line: Line, round: int, group: int) -> str:
    """Return what a group's clients and server remember of this round in the next."""
    return f"{round_folder(line, round, group)}/state.safetensors"


def own_state_before(line: Line, round: int, group: int) -> list[str]:
    """Return the round state that the aggregation of a round and group goes on from, if any."""
    return [round_state(line, round - 1, group)] if round > 1 and keeps_state(line) else []


def states_before(line: Line, round: int, group: int) -> list[str]:
    """Return the round states that the participants of a round and group read, if any.

    Where control variates are shared, a client may have been in any group before: those of all.
    """
    groups = range(line.global_models) if shares_control(line) else [group]
    return [path for other in groups for path in own_state_before(line, round, other)]


def initial_model(data: Data, model: Model, seed: int, group: int) -> str:
    """Return w*_{0,k}, which every method of a seed shares."""
    folder = initial_id(data, model, seed)
    return f"{RESULTS}/initial_models/{folder}/group_{group}.safetensors"


def global_model(line: Line, round: int, group: int) -> str:
    """Return w*_{t,k}; round 0 is the initial model."""
    if round == 0:
        return initial_model(line.data, line.model, line.seed, group)
    if is_distilled(line, round, group):
        return f"{line_folder(line)}/round_{round:04d}/group_{group}/distilled.safetensors"
    return aggregated_model(line, round, group)


# --- ensembles ------------------------------------------------------------------------------------


def public_id(line: Line) -> str:
    """Name the public images: `held_out`, or the folder of another data set."""
    return "held_out" if isinstance(line.public, HeldOut) else data_id(line.public)


def public_file(line: Line) -> str:
    """Return the public images of a line's distillation."""
    if isinstance(line.public, HeldOut):
        return data_file(line.data, "held_out")
    return data_file(line.public, "train")


def statistics_images(line: Line) -> list[str]:
    """Return the images that an aggregation estimates running statistics on, if it does."""
    return [public_file(line)] if re_estimates(line) else []


def member_logits(line: Line, round: int, ensemble: EnsembleTrainer, images: str) -> list[str]:
    """Return the logits of an ensemble's members at the end of `round`.

    A temporal ensemble of R checkpoints has fewer in the first R - 1 rounds: those there are.

    Parameters
    ----------
    images : str
        What the logits are computed on: ``test``, ``validation``, ``held_out`` or a data set's id.
    """
    members = "clients" if isinstance(ensemble, Clients) else "aggregated"
    return [
        f"{round_folder(line, past, group)}/logits/{members}-{images}.safetensors"
        for past in member_rounds(round, ensemble)
        for group in range(line.global_models)
    ]


def member_models(line: Line, round: int, ensemble: EnsembleTrainer) -> list[str]:
    """Return the models that an ensemble has as members at the end of `round`."""
    return [
        path
        for past in member_rounds(round, ensemble)
        for group in range(line.global_models)
        for path in (
            updates(line, past, group)
            if isinstance(ensemble, Clients)
            else [aggregated_model(line, past, group)]
        )
    ]


def member_rounds(round: int, ensemble: EnsembleTrainer) -> range:
    """Return the rounds that an ensemble's members at the end of `round` come from."""
    checkpoints = 1 if isinstance(ensemble, Clients) else ensemble.checkpoints
    return range(max(1, round - checkpoints + 1), round + 1)


def teacher_logits(line: Line, round: int) -> list[str]:
    """Return what the distillation at the end of `round` reads as its teacher E_t."""
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    return member_logits(line, round, line.ensemble, public_id(line))


def teacher_member(line: Line, round: int, group: int) -> str:
    """Return the logits that one round and group contribute to the line's teachers."""
    members = "clients" if isinstance(line.ensemble, Clients) else "aggregated"
    name = f"logits/{members}-{public_id(line)}.safetensors"
    return f"{round_folder(line, round, group)}/{name}"


# --- results --------------------------------------------------------------------------------------


def evaluated_rounds(rounds: int, every: int) -> list[int]:
    """Return the rounds that are evaluated: each `every`-th, and the last."""
    return sorted({*range(every, rounds + 1, every), rounds})


def metrics_file(line: Line, evaluated: str, role: str, rounds: int, every: int) -> str:
    """Return the metrics of a line: a row an evaluated round."""
    name = f"rounds_{rounds:04d}_every_{every}.parquet"
    return f"{line_folder(line)}/metrics/{evaluated}-{role}/{name}"


def local_folder(line: LocalLine) -> str:
    """Return the folder of models that are trained without federation."""
    return f"{RESULTS}/local_models/{local_id(line)}"


def local_models(line: LocalLine) -> list[str]:
    """Return a model a client, or the one of the pooled data."""
    if line.pooled:
        return [f"{local_folder(line)}/pooled.safetensors"]
    return [f"{local_folder(line)}/client_{client}.safetensors" for client in range(line.clients)]


def local_metrics_file(line: LocalLine, role: str, rounds: int) -> str:
    """Return the metrics of unfederated models, booked under the round they are compared with."""
    return f"{local_folder(line)}/metrics/{role}-rounds_{rounds:04d}.parquet"
