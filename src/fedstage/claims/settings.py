"""A claim: which cells of an experiment's table are said to be above which others."""

from typing import Literal

from pydantic import model_validator

from fedstage.config import Cells, Name, Rate, Settings


class Claim(Settings):
    """One ordering that a paper claims, over cells of an experiment.

    Either `greater` or `less` cells are compared with those of `than`, or the `ratio` of cells `to`
    others with a bound. Of these cells, those are compared that agree on all axes which neither
    side names; `where` holds for both sides. `all`: the claim is about every comparison; `mean`:
    about their average. `metric` is that of the experiment's table unless it names another.
    """

    id: Name
    text: str
    place: str
    experiment: Name
    metric: str | None = None
    where: Cells = {}
    greater: Cells | None = None
    less: Cells | None = None
    than: Cells | None = None
    ratio: Cells | None = None
    to: Cells | None = None
    at_least: Rate | None = None
    at_most: Rate | None = None
    quantifier: Literal["all", "mean"] = "all"

    @model_validator(mode="after")
    def _one_comparison(self) -> "Claim":
        given = {name for name in _PARTS if getattr(self, name) is not None}
        if given not in _FORMS:
            raise ValueError(
                f"claim {self.id!r}: {', '.join(sorted(given)) or 'no comparison'}: give greater "
                "and than, less and than, or ratio, to and one of at_least and at_most"
            )
        return self


class ClaimList(Settings):
    """Claims, as a stage reads them."""

    claims: list[Claim]


class ClaimFile(ClaimList):
    """A file of `workflow/claims`: the claims of one paper."""

    paper: str


_PARTS = ("greater", "less", "than", "ratio", "to", "at_least", "at_most")
_FORMS = (
    {"greater", "than"},
    {"less", "than"},
    {"ratio", "to", "at_least"},
    {"ratio", "to", "at_most"},
)
