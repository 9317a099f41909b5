"""Where every file of a line is, and which files each stage reads: the edges of the DAG.

Notation of FedSDD: round t = 1..T, group (global model) k = 0..K-1; w_{t,k} is the aggregated
model, w*_{t,k} the global model that round t+1 starts from (distilled if the group is a student).
Only standard library and settings here: the Snakefile reads this at every call.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedstage.plan.members import checkpoints, member_kinds, parse_sampled
from fedstage.plan.rounds import block_of
from fedstage.plan.sharing import (
    aggregating,
    aggregator_id,
    client_model,
    clients_keep_state,
    data_id,
    group_slots,
    initial_id,
    is_distilled,
    keeps_state,
    line_id,
    local_id,
    local_line,
    members,
    model_of,
    normalised,
    owner,
    participation_id,
    partition_id,
    quantisation_id,
    quantised_line,
    shares_control,
    student_id,
    teaching,
)
from fedstage.settings.aggregators import FITTED_AGGREGATORS
from fedstage.settings.data import Data, HeldOut
from fedstage.settings.ensembles import EnsembleTrainer
from fedstage.settings.lines import Line, LocalLine, re_estimates
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.optimisation import needs_validation

RESULTS = "results"


# --- data -----------------------------------------------------------------------------------------


def data_file(data: Data, part: str) -> str:
    """Return a data set's file.

    `part` is ``train``, ``test``, ``test_own``, ``held_out``, ``server_validation`` or ``info``.
    """
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
    return data_file(line.data, "train" if role == "validation" else role)


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
    What only the server remembers is not read.
    """
    if not clients_keep_state(line):
        return []
    groups = range(line.global_models) if shares_control(line) else [group]
    return [path for other in groups for path in own_state_before(line, round, other)]


def initial_model(data: Data, model: Model, seed: int, group: int) -> str:
    """Return w*_{0,k}, which every method of a seed shares."""
    folder = initial_id(data, model, seed)
    return f"{RESULTS}/initial_models/{folder}/group_{group}.safetensors"


def global_model(line: Line, round: int, group: int) -> str:
    """Return w*_{t,k}; round 0 is what the line starts from, by default the initial model."""
    if round == 0:
        return line.start or initial_model(line.data, model_of(line, group), line.seed, group)
    if is_distilled(line, round, group):
        return f"{line_folder(line)}/round_{round:04d}/group_{group}/distilled.safetensors"
    return aggregated_model(line, round, group)


# --- ensembles ------------------------------------------------------------------------------------


def public_id(line: Line | OneShotLine) -> str:
    """Name the public images: `held_out`, or the folder of another data set."""
    return "held_out" if isinstance(line.public, HeldOut) else data_id(line.public)


def public_file(line: Line | OneShotLine) -> str:
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
        What the logits are computed on: ``test``, ``test_own``, ``validation``, ``held_out``,
        ``server_validation`` or a data set's id.
    """
    return [
        logits_file(line, past, group, kind, images)
        for past in member_rounds(round, ensemble)
        for group in range(line.global_models)
        for kind in member_kinds(ensemble)
    ]


def member_rounds(round: int, ensemble: EnsembleTrainer) -> range:
    """Return the rounds that an ensemble's members at the end of `round` come from."""
    return range(max(1, round - checkpoints(ensemble) + 1), round + 1)


def logits_file(line: Line, round: int, group: int, members: str, images: str) -> str:
    """Return what the members of one kind, of a round and group, say about images."""
    return f"{round_folder(line, round, group)}/logits/{members}-{images}.safetensors"


@dataclass(frozen=True)
class MemberModels:
    """The models that logits of members are computed from.

    Attributes
    ----------
    models : tuple of str
        The members, or what they are drawn from.
    aggregated, start : str or None
        For members that are drawn w_{t,k}, and the model that the round started from where the
        distribution is about it.
    """

    models: tuple[str, ...]
    aggregated: str | None = None
    start: str | None = None

    def __iter__(self) -> Iterator[str]:
        """Yield all files."""
        return (path for path in (*self.models, self.aggregated, self.start) if path is not None)


def member_models(line: Line, round: int, group: int, members: str) -> MemberModels:
    """Return the models that the logits of one kind of members are computed from."""
    aggregated = aggregated_model(line, round, group)
    if members == "aggregated":
        return MemberModels((aggregated,))
    models = tuple(updates(line, round, group))
    drawn = parse_sampled(members)
    if drawn is None:
        return MemberModels(models)
    about_start = drawn.variant == "as_released"
    start = global_model(line, round - 1, group) if about_start else None
    return MemberModels(models, aggregated, start)


# --- distillation ---------------------------------------------------------------------------------


def teacher_logits(line: Line, round: int) -> list[str]:
    """Return what the distillation at the end of `round` reads as its teacher E_t."""
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    return member_logits(line, round, line.ensemble, public_id(line))


def judged_logits(line: Line, round: int) -> list[str]:
    """Return what clients are judged by, where the worst are left out of the fusion."""
    if not drops_worst(line):
        return []
    groups = range(line.global_models)
    return [logits_file(line, round, group, "clients", "server_validation") for group in groups]


def fused_updates(line: Line, round: int, group: int) -> list[str]:
    """Return what a student's start is averaged from anew, where the worst are left out."""
    return updates(line, round, group) if drops_worst(line) else []


def server_validation(line: Line | OneShotLine) -> str | None:
    """Return the server's own labelled images, where a distillation reads them."""
    if line.server is None or not needs_validation(line.server):
        return None
    return data_file(line.data, "server_validation")


def teaching_logits(line: Line) -> list[tuple[str, str, str]]:
    """Return the logits of each round and group that distillations read.

    Returns
    -------
    list of tuple
        The kind of members, the name of the images and their file.
    """
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    public = (public_id(line), public_file(line))
    wanted = [(kind, *public) for kind in member_kinds(line.ensemble)]
    if drops_worst(line):
        images = "server_validation"
        wanted.append(("clients", images, data_file(line.data, images)))
    return wanted


def spoken_logits(line: Line, round: int, group: int) -> list[str]:
    """Return the logits of a round and group that distillations read; none without distillation."""
    wanted = teaching_logits(line) if line.global_trainer is not None else []
    return [logits_file(line, round, group, members, images) for members, images, _ in wanted]


def drops_worst(line: Line) -> bool:
    """Whether the worst client models are left out of the fusion."""
    return line.server is not None and line.server.drop_worst != "none"


# --- results --------------------------------------------------------------------------------------


def evaluated_rounds(rounds: int, every: int) -> list[int]:
    """Return the rounds that are evaluated: each `every`-th, and the last."""
    return sorted({*range(every, rounds + 1, every), rounds})


def metrics_file(line: Line, evaluated: str, role: str, rounds: int, every: int) -> str:
    """Return the metrics of a line: a row an evaluated round."""
    name = f"rounds_{rounds:04d}_every_{every}.parquet"
    return f"{line_folder(line)}/metrics/{evaluated}-{role}/{name}"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the candidate that a choice has taken."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return what says which candidate a choice has taken."""
    return f"{RESULTS}/choices/{choice}/chosen.json"


def local_folder(line: LocalLine) -> str:
    """Return the folder of models that are trained without federation."""
    return f"{RESULTS}/local_models/{local_id(line)}"


def local_models(line: LocalLine) -> list[str]:
    """Return a model a client, or the one of the pooled data."""
    if line.pooled:
        return [f"{local_folder(line)}/pooled.safetensors"]
    return [f"{local_folder(line)}/client_{client}.safetensors" for client in range(line.clients)]


def local_metrics_file(line: LocalLine, role: str, rounds: int, client: int | None = None) -> str:
    """Return the metrics of unfederated models, booked under the round they are compared with.

    They are of all clients, as means, or of one; in the precision of the line.
    """
    everybody = "pooled" if line.pooled else "each_client"
    who = everybody if client is None else f"client_{client}"
    folder = f"{local_folder(line)}/metrics/{quantisation_id(line.quantisation)}"
    return f"{folder}/{who}-{role}-rounds_{rounds:04d}.parquet"


def local_start(line: LocalLine, client: int | None) -> str:
    """Return the weights that a client, or the pooled data (None), starts from.

    Those that are common are the initial model that federated runs of the seed start from, or what
    another line has ended in.
    """
    if line.start is not None:
        return line.start
    if client is None:
        return initial_model(line.data, line.model, line.seed, group=0)
    group = client if line.initialisation == "own" else 0
    return initial_model(line.data, client_model(line, client), line.seed, group)


# --- one-shot federated learning ------------------------------------------------------------------


def partition_line(line: Line | LocalLine | OneShotLine) -> Line | LocalLine:
    """Return the line whose partition a run has."""
    return local_line(line) if isinstance(line, OneShotLine) else line


def asked_models(line: LocalLine) -> list[str]:
    """Return the models that are asked: those that are trained, or what is quantised of them."""
    if line.quantisation.name == "none":
        return local_models(line)
    folder = f"{local_folder(line)}/quantised/{quantisation_id(line.quantisation)}"
    return [f"{folder}/client_{client}.safetensors" for client in range(line.clients)]


def scored_models(line: LocalLine) -> dict[str, list[str]]:
    """Return whose models can be scored, in the precision of the line, with their files.

    That are ``each_client`` (the mean over all) and ``client_0`` and so on, or ``pooled``.
    """
    models = asked_models(line)
    if line.pooled:
        return {"pooled": models}
    alone = {f"client_{client}": [path] for client, path in enumerate(models)}
    return {"each_client": models} | alone


def client_logits(line: LocalLine, client: int, images: str) -> str:
    """Return what a client's model says about images, in the precision of the line.

    Parameters
    ----------
    images : str
        ``test``, ``test_own``; ``validation`` or ``aggregator``: the samples of this role of all
        clients;
        ``held_out``, ``server_validation`` or another data set's id.
    """
    precision = quantisation_id(line.quantisation)
    return f"{local_folder(line)}/logits/{precision}/client_{client}-{images}.safetensors"


def members_logits(line: OneShotLine, images: str) -> list[str]:
    """Return what the members of a one-shot ensemble say about images, in the order of clients."""
    return [client_logits(quantised_line(line), client, images) for client in members(line)]


def members_quantised(line: OneShotLine) -> list[str]:
    """Return the quantised models of a one-shot ensemble, where it has them."""
    if line.quantisation.name == "none":
        return []
    models = asked_models(quantised_line(line))
    return [models[client] for client in members(line)]


def local_images(line: LocalLine, images: str) -> str:
    """Return the images that a client's logits are of."""
    if images in ("test", "test_own", "held_out", "server_validation"):
        return data_file(line.data, images)
    if images in ("validation", "aggregator"):
        return data_file(line.data, "train")
    return f"{RESULTS}/data/{images}/train.safetensors"


def aggregator_folder(line: OneShotLine) -> str:
    """Return the folder of an aggregator."""
    return f"{RESULTS}/aggregators/{aggregator_id(line)}"


def aggregator_file(line: OneShotLine) -> str:
    """Return what an aggregator has learnt or counted."""
    return f"{aggregator_folder(line)}/aggregator.safetensors"


def aggregator_reads(line: OneShotLine) -> dict[str, list[str]]:
    """Return what an aggregator is fitted to, and stopped by, by the options of its stage.

    Nothing where the rule needs no samples. Never the test set.
    """
    if line.aggregator.name not in FITTED_AGGREGATORS:
        return {}
    training = aggregating(line).aggregator_training
    proxy = training is not None and training.name == "proxy"
    images = "server_validation" if proxy else "aggregator"
    read = _spoken(line, images, "logits", "data")
    if training is not None and training.early_stopping is not None:
        read |= _spoken(line, "validation", "validation_logits", "validation")
    return read


def _spoken(line: OneShotLine, images: str, logits: str, data: str) -> dict[str, list[str]]:
    return {
        logits: members_logits(line, images),
        data: [local_images(local_line(line), images)],
    }


def aggregator_rounds(line: OneShotLine) -> str:
    """Return the table of an aggregator's rounds and of what travels before and in them."""
    return f"{aggregator_folder(line)}/rounds.parquet"


def student_folder(line: OneShotLine) -> str:
    """Return the folder of a model that a one-shot ensemble has taught."""
    return f"{RESULTS}/distilled_models/{student_id(line)}"


def student_file(line: OneShotLine) -> str:
    """Return the model that a one-shot ensemble has taught."""
    return f"{student_folder(line)}/model.safetensors"


def student_start(line: OneShotLine) -> str:
    """Return the weights that a one-shot student starts from.

    That is an initial model of its seed, or what the clients start from where that was trained
    before and is of the same architecture.
    """
    model = teaching(line).student
    assert model is not None, "a line with a student has its architecture"
    if line.start is not None and model == local_line(line).model:
        return line.start
    return initial_model(line.data, model, line.seed, group=0)


def one_shot_metrics_file(line: OneShotLine, role: str) -> str:
    """Return the metrics of what a one-shot line predicts in the end."""
    folder = aggregator_folder(line) if line.distillation is None else student_folder(line)
    return f"{folder}/metrics/{role}.parquet"
