"""Where every file of a training line is.

Notation of FedSDD: round t = 1..T, group (global model) k = 0..K-1; w_{t,k} is the aggregated
model, w*_{t,k} the global model that round t+1 starts from (distilled if the group is a student).
Only standard library and settings here: the Snakefile reads this at every call.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedstage.plan.data_files import data_file, samples_file
from fedstage.plan.identity import data_id, initial_id, line_id
from fedstage.plan.members import cached_kinds, member_kinds, member_rounds, parse_sampled
from fedstage.plan.results import RESULTS
from fedstage.plan.sharing import (
    caches_labels,
    clients_keep_state,
    exchanges_logits,
    hears_server,
    is_distilled,
    keeps_state,
    logits_owner,
    normalised,
    owner,
    shares_control,
    speaks,
    takes_features,
    takes_head,
    update_owner,
    was_taught,
)
from fedstage.settings.data import Data
from fedstage.settings.ensembles import EnsembleTrainer, OneByOne
from fedstage.settings.groups import client_groups, group_slots, model_of
from fedstage.settings.lines import Line, drops_worst, re_estimates
from fedstage.settings.models import Model
from fedstage.settings.public import CoreSamples, Generated, HeldOut
from fedstage.settings.server import needs_validation

# --- a round --------------------------------------------------------------------------------------


def line_folder(line: Line) -> str:
    """Return the folder of a training line."""
    return f"{RESULTS}/training/{line_id(normalised(line))}"


def line_file(line: Line) -> str:
    """Return the file of the line's settings."""
    return f"{line_folder(line)}/line.yaml"


@cache  # called hundreds of thousands of times for a large graph
def round_folder(line: Line, round: int, group: int) -> str:
    """Return the folder of a round and group, in the line that owns it."""
    return _folder_in(owner(line, round, group), round, group)


def _folder_in(line: Line, round: int, group: int) -> str:
    return f"{line_folder(line)}/round_{round:04d}/group_{group}"


def updates(line: Line, round: int, group: int) -> list[str]:
    """Return the updates of a group's participants, in the order of their slots."""
    slots, folder = group_slots(line, group), round_folder(line, round, group)
    if line.staleness.name == "none":
        return [f"{folder}/slot_{slot}.safetensors" for slot in slots]
    owned = ((update_owner(line, round, group, slot), slot) for slot in slots)
    return [f"{_folder_in(one, round, group)}/slot_{slot}.safetensors" for one, slot in owned]


def aggregated_model(line: Line, round: int, group: int) -> str:
    """Return w_{t,k}; the server's model has no participants, but may take their heads."""
    if group in client_groups(line):
        return f"{round_folder(line, round, group)}/aggregated.safetensors"
    if line.head_transfer:
        return model_with_head(line, round, group)
    # It is the last distilled one; before its first distillation the initial model.
    taught = was_taught(line, round - 1, group)
    before = (t for t in range(round - 1, 0, -1) if is_distilled(line, t, group))
    return global_model(line, next(before, 0) if taught else 0, group)


def model_with_head(line: Line, round: int, group: int) -> str:
    """Return the model of a group with a head from elsewhere: see `edges.head_transfer`."""
    return f"{line_folder(line)}/round_{round:04d}/group_{group}/with_head.safetensors"


def participants_table(line: Line, round: int, group: int) -> str:
    """Return the group's participants of the round, with samples, loss and bytes."""
    return f"{round_folder(line, round, group)}/participants.parquet"


def round_state(line: Line, round: int, group: int) -> str:
    """Return the state of a group's clients and server that the next round reads."""
    return f"{round_folder(line, round, group)}/state.safetensors"


def own_state_before(line: Line, round: int, group: int) -> list[str]:
    """Return the previous round state of a group, which its aggregation updates, if any."""
    return [round_state(line, round - 1, group)] if round > 1 and keeps_state(line) else []


def states_before(line: Line, round: int, group: int) -> list[str]:
    """Return the round states that the participants of a round and group read, if any.

    With shared control variates they are those of all groups, because a client may have been in any
    group before. Participants do not read state of the server alone.
    """
    if not clients_keep_state(line):
        return []
    groups = client_groups(line) if shares_control(line) else [group]
    return [path for other in groups for path in own_state_before(line, round, other)]


def initial_model(data: Data, model: Model, seed: int, group: int) -> str:
    """Return w*_{0,k}, which every method of a seed shares."""
    return f"{RESULTS}/initial_models/{initial_id(data, model, seed)}/group_{group}.safetensors"


def global_model(line: Line, round: int, group: int) -> str:
    """Return w*_{t,k}; round 0 is the line's start, by default the initial model."""
    if round == 0:
        if line.start and (line.start_of == "all" or group not in client_groups(line)):
            return line.start
        return initial_model(line.data, model_of(line, group), line.seed, group)
    if is_distilled(line, round, group) or takes_features(line, group):
        name = "distilled" if is_distilled(line, round, group) else "trained"
        return f"{line_folder(line)}/round_{round:04d}/group_{group}/{name}.safetensors"
    if takes_head(line, group):
        return model_with_head(line, round, group)
    return aggregated_model(line, round, group)


def history(line: Line, base: int, group: int) -> list[str]:
    """Return the last global models after round `base` that participants who start there learn of.

    They are in the order of rounds, with that of `base`. What was before round 1 has learnt
    nothing, and is none of them.
    """
    rounds = range(max(1, base - line.local.history + 1), base + 1) if line.local.history else ()
    return [global_model(line, round, group) for round in rounds]


def judging_images(line: Line) -> str | None:
    """Return the server's own labelled images, if the models of the history are judged by them."""
    return data_file(line.data, "server_validation") if line.local.judged else None


# --- ensembles and their students -----------------------------------------------------------------


def public_id(line: Line) -> str:
    """Name the public images: `held_out`, `core`, or the folder of another data set."""
    if isinstance(line.public, HeldOut | CoreSamples):
        return line.public.name
    assert not isinstance(line.public, Generated), "a round's generator writes no images"
    return data_id(line.public)


def public_file(line: Line) -> str:
    """Return the public images of a line's distillation."""
    return samples_file(line, public_id(line))


def aggregation_images(line: Line) -> list[str]:
    """Return the public images, if an aggregation reads them.

    It re-estimates running statistics on them, or counts the logits that clients exchange.
    """
    return [public_file(line)] if re_estimates(line) or exchanges_logits(line) else []


def member_logits(
    line: Line, round: int, ensemble: EnsembleTrainer | OneByOne, images: str
) -> list[str]:
    """Return the logits, on images of `samples_file`, of an ensemble's members after `round`."""
    return [
        logits_file(line, past, group, kind, images)
        for past in member_rounds(round, ensemble)
        for group in client_groups(line)
        for kind in member_kinds(ensemble)
    ]


def logits_file(line: Line, round: int, group: int, members: str, images: str) -> str:
    """Return the logits on images of the members of one kind, of a round and group."""
    folder = _folder_in(logits_owner(line, round, group, members), round, group)
    return f"{folder}/logits/{members}-{images}.safetensors"


@dataclass(frozen=True)
class MemberModels:
    """The models that logits of members are computed from."""

    models: tuple[str, ...]  # the members, or the models whose distribution they are drawn from
    aggregated: str | None = None  # w_{t,k}, for drawn members
    start: str | None = None  # the round's start, if the distribution is about it
    server: str | None = None  # the server's model, where it goes on from the members

    def __iter__(self) -> Iterator[str]:
        """Yield all files."""
        return filter(None, (*self.models, self.aggregated, self.start, self.server))


def member_models(line: Line, round: int, group: int, members: str) -> MemberModels:
    """Return the models that the logits of one kind of members are computed from."""
    aggregated = aggregated_model(line, round, group)
    if members == "aggregated":
        return MemberModels((aggregated,))
    models = tuple(updates(line, round, group))
    drawn = parse_sampled(members)
    if drawn is None:
        server = global_model(line, round, 0) if members == "split" else None
        return MemberModels(models, server=server)
    start = global_model(line, round - 1, group) if drawn.variant == "as_released" else None
    return MemberModels(models, aggregated, start)


def teacher_logits(line: Line, round: int) -> list[str]:
    """Return the logits of the teacher E_t after `round`."""
    assert line.ensemble is not None, "checked by Line: what is taught has an ensemble"
    return member_logits(line, round, line.ensemble, public_id(line))


def said_before(line: Line, round: int) -> list[str]:
    """Return what the participants of the last round said, if clients exchange logits."""
    if not exchanges_logits(line) or hears_server(line) or round == 1:
        return []
    return cached_labels(line, round - 1) or teacher_logits(line, round - 1)


def cached_labels(line: Line, round: int) -> list[str]:
    """Return the labels of public samples that are known after a round, if there is a cache.

    They follow from the logits of all groups, and lie with those of the last.
    """
    if not caches_labels(line) or round == 0:
        return []
    return [f"{round_folder(line, round, client_groups(line)[-1])}/cached_labels.safetensors"]


def drop_worst_logits(line: Line, round: int) -> list[str]:
    """Return the logits that rank clients, if the worst are left out of the fusion."""
    groups = client_groups(line) if drops_worst(line) else ()
    return [logits_file(line, round, group, "clients", "server_validation") for group in groups]


def fused_updates(line: Line, round: int, group: int) -> list[str]:
    """Return the updates that a student's start is fused from, if the worst are left out."""
    return updates(line, round, group) if drops_worst(line) else []


def server_validation(line: Line) -> str | None:
    """Return the server's own labelled images, if a distillation reads them."""
    if line.server is None or not needs_validation(line.server):
        return None
    return data_file(line.data, "server_validation")


def teaching_logits(line: Line) -> list[tuple[str, str, str]]:
    """Return the kind of members, name of images, and their file, of logits that students read."""
    needed = [(kind, public_id(line)) for kind in cached_kinds(line)]
    if drops_worst(line):
        needed.append(("clients", "server_validation"))
    return [(kind, images, samples_file(line, images)) for kind, images in needed]


def round_logits(line: Line, round: int, group: int) -> list[str]:
    """Return the logits of a round and group that something learns from, if anything does.

    With those of the last group are the labels that are made of all.
    """
    needed = teaching_logits(line) if speaks(line) else []
    said = [logits_file(line, round, group, members, images) for members, images, _ in needed]
    return said + (cached_labels(line, round) if group == client_groups(line)[-1] else [])


# --- results --------------------------------------------------------------------------------------


def metrics_file(line: Line, evaluated: str, role: str, rounds: int, every: int) -> str:
    """Return the metrics of a line: a row an evaluated round."""
    name = f"rounds_{rounds:04d}_every_{every}.parquet"
    return f"{line_folder(line)}/metrics/{evaluated}-{role}/{name}"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return the file that names the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/chosen.json"
