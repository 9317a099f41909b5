"""Which clients may be which slot of a round, where clients are bound to architectures."""

from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Count, Settings


class Binding(Settings):
    """The architecture of each slot of a round and of each client; None: any.

    Architectures are numbered as the groups first have them. So lines with other models, or with
    more groups of the same, have the same participants.
    """

    slots: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    clients: Annotated[tuple[Count | None, ...], Field(strict=False, min_length=1)]
