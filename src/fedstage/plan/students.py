"""What students start from and learn from: files of a line, as `fedstage.plan.artefacts`."""

from fedstage.plan import artefacts
from fedstage.plan.members import checkpoints, member_kinds, member_rounds
from fedstage.plan.sharing import hears_server, is_distilled
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line
from fedstage.settings.server import has_factors, has_live_teachers


def student_start(line: Line, round: int, group: int) -> str:
    """Return the model that a student of a round starts from.

    It is w_{t,k}, or w*_{t-1,k} where trained models are teachers only.
    """
    trainer = line.global_trainer
    assert trainer is not None, "only global trainers have students"
    if trainer.starts_from == "previous" and group in client_groups(line):
        return artefacts.global_model(line, round - 1, group)
    return artefacts.aggregated_model(line, round, group)


def teaches_live(line: Line) -> bool:
    """Whether teachers' models compute logits of the images that students see."""
    return line.server is not None and has_live_teachers(line.server)


def reads_teachers(line: Line) -> bool:
    """Whether distillations read the models of the ensemble's members themselves."""
    if line.global_trainer is None or line.server is None:
        return False
    return has_live_teachers(line.server) or has_factors(line.server)


def logits_of_teachers(line: Line, round: int) -> list[str]:
    """Return the logits of the teacher after a round, unless its models compute them live.

    Or the labels that are kept of such logits.
    """
    if teaches_live(line):
        return []
    kept = selected_labels(line, round) or artefacts.cached_labels(line, round)
    return kept or artefacts.teacher_logits(line, round)


def selected_labels(line: Line, round: int) -> list[str]:
    """Return what the server's model is to learn after a round, where it selects that itself."""
    if not hears_server(line) or not is_distilled(line, round, 0):
        return []
    return [f"{artefacts.line_folder(line)}/round_{round:04d}/group_0/selected_labels.safetensors"]


def learnt_from(line: Line, round: int, group: int) -> list[str]:
    """Return the logits and labels of a round and group that something learns from."""
    selected = selected_labels(line, round) if group == 0 else []
    return artefacts.round_logits(line, round, group) + selected


def models_of_teachers(line: Line, round: int) -> list[str]:
    """Return the models of the teacher's members after a round, if a distillation reads them."""
    if not reads_teachers(line):
        return []
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    return [
        path
        for past in member_rounds(round, line.ensemble)
        for group in client_groups(line)
        for kind in member_kinds(line.ensemble)
        for path in artefacts.member_models(line, past, group, kind)
    ]


def rounds_of_models(line: Line) -> int:
    """Return for how many rounds a round's models are read by the rounds after it."""
    longest = max(1, line.local.history)
    if not reads_teachers(line):
        return longest
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    return max(longest, checkpoints(line.ensemble) - 1)
