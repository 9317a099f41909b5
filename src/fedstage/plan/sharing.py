"""Sharing: which training line owns a file.

A file belongs to the line stripped of every setting that cannot reach it (`owner`), so that methods
which share their first rounds, or their undistilled groups, share the files.
"""

from functools import cache
from typing import Any

from fedstage.plan.staleness import base_round, first_active, is_idle, shortest
from fedstage.settings.aggregation import Aggregation
from fedstage.settings.groups import (
    BoundClients,
    client_groups,
    group_slots,
    model_of,
    models_of,
)
from fedstage.settings.lines import Line, re_estimates
from fedstage.settings.local_training import Digest
from fedstage.settings.models import has_batch_norm
from fedstage.settings.public import HeldOut
from fedstage.settings.server import Server, has_live_teachers
from fedstage.settings.transfers import KlTransfer


def students(line: Line) -> tuple[int, ...]:
    """Return the groups whose global models are distilled."""
    if line.global_trainer is None:
        return ()
    if line.global_trainer.name == "basic":
        return tuple(range(line.global_models))
    if line.global_trainer.main == "first":
        return (0,)
    models = models_of(line)
    return tuple(sorted({models.index(model) for model in models}))


def first_distillation(line: Line) -> int:
    """Return the first round that ends in a distillation; 0 if there is none."""
    return first_active(line, line.global_trainer.warm_up + 1) if line.global_trainer else 0


def is_distilled(line: Line, round: int, group: int) -> bool:
    """Whether the group is a student of this round; nobody is where all participants stay away."""
    if group not in students(line) or is_idle(line, round):
        return False
    return 0 < first_distillation(line) <= round


def takes_head(line: Line, group: int) -> bool:
    """Whether the group's model takes the head of the server's in every round."""
    return line.head_transfer and group in client_groups(line)


def takes_features(line: Line, group: int) -> bool:
    """Whether the group's model is the server's, and learns from clients' features every round."""
    return exchanges_features(line) and group not in client_groups(line)


def is_taught(line: Line, round: int, group: int) -> bool:
    """Whether w*_{t,k} differs from w_{t,k}.

    The group is a student, takes the server's head, or is the server's and learns from features.
    """
    taught = takes_head(line, group) or takes_features(line, group)
    return taught or is_distilled(line, round, group)


def was_taught(line: Line, round: int, group: int) -> bool:
    """Whether anything taught the group in some round up to this one, so that it is in w*_{t,k}."""
    if takes_head(line, group) or takes_features(line, group):
        return round > 0
    return group in students(line) and 0 < first_distillation(line) <= round


def first_taught(line: Line) -> int:
    """Return the first round in which a w*_{t,k} differs from w_{t,k}; 0 if there is none."""
    always = line.head_transfer or exchanges_features(line)
    return 1 if always else first_distillation(line)


def taught_together(line: Line) -> tuple[int, ...]:
    """Return the groups that need one another in every round of a line that teaches some."""
    together = shares_control(line) or line.head_transfer or exchanges_features(line)
    if together or hears_server(line):
        return tuple(range(line.global_models))
    return students(line)


@cache
def owner(line: Line, round: int, group: int) -> Line:
    """Return the line that the training and aggregation of a round and group belong to.

    Distillation reaches w_{t,k} only through what its participants start from; where that was not
    distilled, neither the teacher nor the server's settings can matter, and the file is the
    undistilled line's. So it is with the head of the server's model.
    """
    return normalised(line) if _is_reached(line, round, group) else undistilled(line)


def _is_reached(line: Line, round: int, group: int) -> bool:
    """Whether a distillation or a head reaches the inputs of a round's participants in a group.

    These are w*_{t-1,k} and, if shared, the control variates that all groups sent in round t-1: the
    students' were reached if they had started from a distilled model.
    """
    if was_taught(line, round - 1, group):
        return True
    if hears_server(line) and was_taught(line, round - 1, 0):
        return True
    return shares_control(line) and 0 < first_distillation(line) <= round - 2


@cache
def update_owner(line: Line, round: int, group: int, slot: int) -> Line:
    """Return the line that a participant's update belongs to.

    Who starts from w*_{b,k} reads what the participants of round b + 1 read that are in step.
    """
    return owner(line, base_round(line, round, slot) + 1, group)


def logits_owner(line: Line, round: int, group: int, members: str) -> Line:
    """Return the line that the logits of members belong to: clients' depend on updates alone."""
    own = owner(line, round, group)
    if members != "clients" or line.staleness.name == "none":
        return own
    owners = {update_owner(line, round, group, slot) for slot in group_slots(line, group)}
    return owners.pop() if len(owners) == 1 else own


@cache
def undistilled(line: Line) -> Line:
    """Return the line without its distillation, and without the head of the server's model."""
    return normalised(line.model_copy(update={"global_trainer": None, "head_transfer": False}))


@cache
def normalised(line: Line) -> Line:
    """Return the line with settings that nothing reads at their defaults."""
    unread: dict[str, Any] = {}
    if not learns(line):
        unread = {"ensemble": None, "distillation": KlTransfer(name="kl"), "generator": None}
        unread["server"] = _without_teacher(line.server) if exchanges_features(line) else None
        if not re_estimates(line):
            unread["public"] = HeldOut(name="held_out")
    groups = len(client_groups(line))
    if line.participants % groups < 2 or line.client_groups == "drawn":
        unread["remainder"] = "spread"  # a remainder of one is the first group's in any case
    if groups == 1:
        unread["client_groups"] = "slots"
    if set(line.architectures) == {line.model}:
        unread["architectures"] = ()
    if line.client_architectures:
        unread["client_architectures"] = _runs_of_clients(line)
    trainer = line.global_trainer
    if trainer is not None and trainer.name == "designated" and len(set(models_of(line))) == 1:
        # With one architecture the main model is group 0's in any case.
        trainer = unread["global_trainer"] = trainer.model_copy(update={"main": "first"})
    if trainer is not None and not set(students(line)) & set(client_groups(line)):
        # The server's model starts from its previous one in any case.
        unread["global_trainer"] = trainer.model_copy(update={"starts_from": "aggregated"})
    if line.start is None:
        unread["start_of"] = "all"
    unread["staleness"] = staleness = shortest(line.staleness)
    unread["aggregation"] = line.aggregation.model_copy(update=_unread_aggregation(line))
    if staleness.name == "none":
        unread["withdraw_stale"] = False
    if line.local.name == "scaffold" and groups == 1:
        unread["local"] = line.local.model_copy(update={"control": "per_model"})
    changed = line.model_copy(update=unread)
    return line if changed == line else changed  # the same object is soon found to be equal


def _unread_aggregation(line: Line) -> dict[str, Any]:
    """Return the settings of the aggregation that nothing reads, at their defaults."""
    names = [] if any(map(has_batch_norm, models_of(line))) else ["batch_norm"]
    if line.withdraw_stale or shortest(line.staleness).name == "none":
        names += ["discount", "stale"]
    return {name: Aggregation.model_fields[name].default for name in names}


def _without_teacher(server: Server | None) -> Server | None:
    """Return the server's settings with those about an ensemble's predictions at their defaults."""
    about = ("temperature", "tau_squared", "softened", "sharpening")
    defaults = {name: Server.model_fields[name].default for name in about}
    return server and server.model_copy(update=defaults)


def _runs_of_clients(line: Line) -> tuple[BoundClients, ...]:
    """Return `client_architectures` in its unique shortest form.

    Neighbours that are bound to the same architecture are one entry, and trailing unbound clients
    are left out. If all groups that clients train have one architecture, no client is bound.
    """
    runs: list[BoundClients] = []
    several = len({model_of(line, group) for group in client_groups(line)}) > 1
    for part in line.client_architectures if several else ():
        if runs and runs[-1].model == part.model:
            part = part.model_copy(update={"clients": runs.pop().clients + part.clients})
        runs.append(part)
    return tuple(runs[:-1] if runs and runs[-1].model is None else runs)


def shares_control(line: Line) -> bool:
    """Whether a round reads the control variates that all groups sent in the previous round."""
    local = normalised(line).local
    return local.name == "scaffold" and local.control == "shared"


def exchanges_logits(line: Line) -> bool:
    """Whether clients learn from one another's logits, and no weights travel."""
    return line.local.exchanges == "logits"


def caches_labels(line: Line) -> bool:
    """Whether what clients have said in earlier rounds is kept, and not asked for anew."""
    return isinstance(line.local, Digest) and line.local.cache is not None


def hears_server(line: Line) -> bool:
    """Whether clients that send logits learn from the server's model in place of one another."""
    return isinstance(line.local, Digest) and line.local.teacher == "server"


def exchanges_features(line: Line) -> bool:
    """Whether a model on the server learns from features of clients' samples; no weights travel."""
    return line.local.exchanges == "features"


def weights_travel(line: Line) -> bool:
    """Whether clients send and receive weights of models."""
    return not (exchanges_logits(line) or exchanges_features(line))


def learns(line: Line) -> bool:
    """Whether something learns in the rounds from an ensemble."""
    return line.global_trainer is not None or exchanges_logits(line)


def speaks(line: Line) -> bool:
    """Whether something learns in the rounds from logits on public samples."""
    return learns(line) and not generates(line)


def generates(line: Line) -> bool:
    """Whether students learn from images that the server generates, and from no public ones."""
    return line.global_trainer is not None and line.generator is not None


def teaches_live(line: Line) -> bool:
    """Whether teachers' models compute logits of the images that students see."""
    live = line.server is not None and has_live_teachers(line.server)
    return live or generates(line)


def trained_together(line: Line) -> bool:
    """Whether a round's trainings read what other groups made in the round before."""
    return shares_control(line) or not weights_travel(line)


def takes_changes(line: Line) -> bool:
    """Whether an aggregation takes changes since the models that participants started from."""
    return normalised(line).aggregation.stale == "changes"


def keeps_state(line: Line) -> bool:
    """Whether clients or the server keep state between rounds beside the model."""
    return clients_keep_state(line) or optimises(line) or keeps_changes(line)


def clients_keep_state(line: Line) -> bool:
    """Whether participants read the previous round's state."""
    kept = line.compression.name == "stc" and line.compression.residuals
    return line.local.keeps_state or keeps_statistics(line) or kept


def optimises(line: Line) -> bool:
    """Whether the server has an optimiser, whose moments it keeps."""
    return line.aggregation.server_optimizer.name != "average"


def keeps_changes(line: Line) -> bool:
    """Whether compression keeps residuals, or which model each client has."""
    compression = line.compression
    return compression.name == "stc" and (compression.residuals or compression.downstream)


def keeps_statistics(line: Line) -> bool:
    """Whether clients keep their own running statistics of batch normalisation."""
    return normalised(line).aggregation.batch_norm == "local"
