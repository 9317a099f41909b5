"""Numbering of rounds, from 1: blocks with a common file of participants, and evaluated rounds."""

#: Rounds with a common file of participants.
BLOCK = 100


def block_of(round_: int) -> tuple[int, int]:
    """Return the first and last round of the fixed block that contains `round_`.

    The blocks (1-100, 101-200, ...) do not depend on the length of a run, so extending a run leaves
    the files of earlier rounds unchanged.
    """
    if round_ < 1:
        raise ValueError(f"round = {round_}: at least 1")
    first = (round_ - 1) // BLOCK * BLOCK + 1
    return first, first + BLOCK - 1


def evaluated_rounds(rounds: int, every: int) -> list[int]:
    """Return the rounds that are evaluated: each `every`-th, and the last."""
    return sorted({*range(every, rounds + 1, every), rounds})
