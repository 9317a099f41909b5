"""The names of runs for people: by method, further axes and seed."""

from collections.abc import Mapping
from urllib.parse import quote_plus

from fedstage.settings.scores import Axis

_OWN = ("method", "seed")


def run_name(axes: Mapping[str, Axis]) -> str:
    """Return the path of a run: ``feddf/partition.alpha=0.1,data=cifar10/seed_0``.

    Values are quoted as in URLs, so that all names are distinct and valid names of folders.
    """
    further = [f"{axis}={_quoted(value)}" for axis, value in axes.items() if axis not in _OWN]
    place = [_quoted(axes["method"]), *([",".join(further)] if further else [])]
    return "/".join([*place, f"seed_{_quoted(axes['seed'])}"])


def _quoted(value: object) -> str:
    text = quote_plus(str(value), safe="")
    return text if text.strip(".") else text.replace(".", "%2E")  # no folder above
