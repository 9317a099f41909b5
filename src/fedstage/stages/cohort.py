"""Stage `cohort`: several participants of a round and group train in one process."""

from pathlib import Path

from fedstage.stages.local_training import local_training


def cohort(
    *,
    line: Path,
    round: int,
    group: int,
    slots: list[int],
    data: Path,
    info: Path,
    clients: Path,
    participation: Path,
    start: Path,
    state: list[Path] | None = None,
    outputs: list[Path],
) -> None:
    """Call the stage `local_training` for each of `slots`; `outputs` are their updates."""
    for slot, output in zip(slots, outputs, strict=True):
        local_training(
            line=line,
            round=round,
            group=group,
            slot=slot,
            data=data,
            info=info,
            clients=clients,
            participation=participation,
            start=start,
            state=state,
            output=output,
        )
