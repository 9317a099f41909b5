"""Label counts, which clients also send where students learn from generated images.

They reveal how many samples of each class a client has.
"""

from fedstage.plan.taught import is_distilled
from fedstage.settings.exchange import generates, students
from fedstage.settings.recipes import Recipe

COUNT = 4  # bytes of a count, int32, or of an accuracy, float32


def counts_sent(recipe: Recipe, round_: int, classes: int) -> int:
    """Return the bytes of the label counts that each participant of a round sends.

    Counts are sent where students of the round learn from images generated with them. Tables of
    participants do not include these bytes, because recipes with and without students share the
    tables.
    """
    taught = any(is_distilled(recipe, round_, group) for group in students(recipe))
    return COUNT * classes if taught and generates(recipe) else 0
