"""What a run is scored by: it must be there, and somebody must have trained it."""

from fedstage.errors import FedstageError
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.staleness import is_idle
from fedstage.settings.base import alternatives
from fedstage.settings.data import Data
from fedstage.settings.ensembles import GlobalModel, SplitModel
from fedstage.settings.exchange import exchanges_features, students, weights_travel
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.runs import RunLength


def check_evaluated(where: str, line: Line | LocalLine | OneShotLine, length: RunLength) -> None:
    """Refuse samples that the data lacks, clients without a model, and models nobody trains."""
    if length.role == "validation" and not line.validation:
        raise FedstageError(f"{where}: validation = 0: role = 'validation' needs more than 0")
    if length.role == "test_own" and not line.data.has_own_test:
        kinds = (kind for kind in alternatives(Data) if getattr(kind, "has_own_test", False))
        allowed = " or ".join(name for kind in kinds for name in kind.names())
        raise FedstageError(
            f"{where}: role = 'test_own': only for data = {allowed}, and here "
            f"data = {line.data.name}"
        )
    _check_client(f"{where}: evaluate_client = {length.evaluate_client}", line, length)
    if isinstance(line, Line):
        _check_trained(where, line, length)
        _check_present(where, line, length)


def _check_client(where: str, line: Line | LocalLine | OneShotLine, length: RunLength) -> None:
    """Refuse to score a client that has no own model."""
    if length.evaluate_client is None:
        return
    if length.training != "alone":
        raise FedstageError(f"{where}: only for training = alone, not {length.training}")
    if length.evaluate_client >= line.clients:
        last = f"the last of clients = {line.clients}"
        raise FedstageError(f"{where}: at most {line.clients - 1}, {last}")


def _check_trained(where: str, line: Line, length: RunLength) -> None:
    """Refuse to score a main model, or averaged models, that stay as they were drawn."""
    evaluated = f"{where}: evaluate = {length.evaluate.name!r}"
    allowed = "use each_client or clients"
    if exchanges_features(line):
        allowed = "use split_model, each_client or clients"
    elif isinstance(length.evaluate, SplitModel):
        raise FedstageError(f"{evaluated}: only with local = gkt, whose clients send features")
    reason = None
    if isinstance(length.evaluate, GlobalModel):
        reason = why_untrained(line)
    elif "aggregated" in length.evaluate.members:
        reason = _why_not_averaged(line)
    if reason:
        raise FedstageError(f"{evaluated}: {reason}; {allowed}")


def _check_present(where: str, line: Line, length: RunLength) -> None:
    """Refuse to score the participants' models of a round in which everybody stays away."""
    members = getattr(length.evaluate, "members", ())
    if members not in (("clients",), ("split",)):
        return
    for round in evaluated_rounds(length.rounds, length.evaluate_every):
        if is_idle(line, round):
            raise FedstageError(
                f"{where}: evaluate = {length.evaluate.name!r}: nobody takes part in round {round} "
                "with withdraw_stale = true; use global_model, or another evaluate_every"
            )


def why_untrained(line: Line) -> str | None:
    """Return why a line's main model cannot be scored, None if it can."""
    if 0 in students(line) or line.head_transfer:
        return None
    if exchanges_features(line):
        return f"alone it takes features, and no samples, with local = {line.local.name}"
    if 0 not in client_groups(line):
        return "nobody trains it with server_model = true, global = null and head_transfer = false"
    return _why_not_averaged(line)


def _why_not_averaged(line: Line) -> str | None:
    if weights_travel(line):
        return None
    return (
        f"nobody trains it with local = {line.local.name}, where no weights travel, and so nothing "
        "is averaged"
    )
