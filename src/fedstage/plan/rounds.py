"""Numbering of rounds, from 1; standard library only, because the workflow imports it too."""

#: Rounds whose participation stands in one file.
BLOCK = 100


def block_of(round: int) -> tuple[int, int]:
    """Return the first and last round of the fixed block that contains `round`.

    The blocks (1-100, 101-200, ...) do not depend on how long a run is, so extending a run leaves
    the files of earlier rounds as they are.

    Raises
    ------
    ValueError
        If `round` is below 1.
    """
    if round < 1:
        raise ValueError(f"round = {round}: at least 1")
    first = (round - 1) // BLOCK * BLOCK + 1
    return first, first + BLOCK - 1
