"""Names and values of a user's data as they are shown in messages: in one line, not too long."""

_LONGEST = 50


def shortened(text: str) -> str:
    """Return a text of at most 50 characters, the last one an ellipsis if it was longer."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def excerpt(text: str) -> str:
    """Return a shortened text with line breaks and other control characters escaped."""
    return "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in shortened(text)
    )


def quoted(text: str) -> str:
    """Return a shortened text in quotes, escaped as in Python."""
    return repr(shortened(text))
