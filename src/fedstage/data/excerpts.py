"""Names and values of a user's data as they are shown in messages: in one line, not too long."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence

_LONGEST = 50
_SHOWN = 10  # names in a line
_ERROR = re.compile(r"#[A-Z/0]+[!?]?")  # of a spreadsheet, such as #REF! and #N/A
_DECIMAL = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]*)?")


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


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])


def have(names: Sequence[str], one: str, many: str) -> str:
    """Return the beginning of a line on names: ``1 class has`` or ``2 classes have``."""
    return f"1 {one} has" if len(names) == 1 else f"{len(names)} {many} have"


def normal(name: str) -> str:
    """Return a name in the one form of Unicode (NFC) that names of classes and clients have."""
    return unicodedata.normalize("NFC", name)


#: Letters without an image that Unicode does not count as format characters: fillers, selectors.
INVISIBLE = "\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f"
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_BESIDE = re.compile("[\u0307\"' ]")  # the dot of a Turkish I, quotes and spaces
_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
#: Cyrillic and Greek letters, in lower case, that look like Latin ones in lower or upper case.
_LOOKS = str.maketrans(
    "авекмнорстухѕіјһԁԛԝ" "αβεζηικμνορτυχ" "ı‐–—−’‘",
    "abekmhopctyxsijhdqw" "abezhikmnoptyx" "i----''",
)  # fmt: skip


def plain(name: str) -> str:
    """Return a name for comparison: without case, doubled spaces, invisible letters and forms.

    Letters of other alphabets are replaced by the Latin ones that they look like.
    """
    seen = (letter for letter in unicodedata.normalize("NFKC", _INVISIBLE.sub("", name))
            if letter.isspace() or unicodedata.category(letter) not in ("Cc", "Cf"))  # fmt: skip
    return " ".join("".join(seen).split()).casefold().translate(_LOOKS)


#: What programs write for a missing value; a name that is meant so is rare.
_MARKS = {"nan", "none", "null", "na", "n/a", "<na>", "nat", "\\n", "#n/a n/a", "?", ".", "-", "--"}


def alike(what: str, names: Sequence[str]) -> Iterator[str]:
    """Yield a line on names that look alike, that may be missing values, or that lack letters."""
    by_look = defaultdict(list)
    marks = [name for name in names if name.casefold() in _MARKS or _ERROR.fullmatch(name)]
    if marks:
        yield f"{what} that may be missing values: {listed([*map(quoted, marks)])}"
    if lost := [quoted(name) for name in names if "\N{REPLACEMENT CHARACTER}" in name]:
        yield f"{what} with letters that were lost before, when a file was written: {listed(lost)}"
    for name in names:
        look = _ZEROS.sub("", _BESIDE.sub("", plain(name)) or plain(name))
        by_look[str(float(look) + 0.0) if _DECIMAL.fullmatch(look) else look].append(name)
    found = [name for same in by_look.values() if len(same) > 1 for name in same]
    if found:
        told = listed([ascii(shortened(name)) for name in found])
        differ = "differ only in case, spaces, quotes, invisible letters, alphabets or zeros"
        yield f"{what} whose names {differ}: {told}"
