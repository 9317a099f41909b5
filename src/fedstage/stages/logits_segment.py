"""Stage `logits_segment`: the logits of a group's members on public images in several rounds."""

from fedstage.plan.segments import LogitsSegment
from fedstage.settings.recipes import Recipe
from fedstage.stages import Seconds, run_job


def logits_segment(
    recipe: Recipe, *, rounds: list[int], group: int, members: str, images: str
) -> Seconds:
    """Call the stage `logits` for each of `rounds`; return the seconds of each.

    Parameters
    ----------
    members : str
        The kind of the members (`fedstage.plan.members`).
    images : str
        The name of the public images in file names.
    """
    part = LogitsSegment(recipe, group, members, images, tuple(rounds))
    seconds = Seconds()
    for job in part.jobs():
        seconds |= run_job(job)
    return seconds
