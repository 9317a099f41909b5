"""How students learn on the server, by its settings and the round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedstage.protocol.teaching import generates, teaching

if TYPE_CHECKING:
    from fedstage.settings.recipes import Recipe
    from fedstage.settings.server import Server


def needs_validation(server: Server) -> bool:
    """Whether a distillation reads the server's validation set."""
    scored = server.early_stopping or server.task_arithmetic
    return scored is not None or server.drop_worst != "none"


def has_live_teachers(server: Server) -> bool:
    """Whether the teacher's logits are of the images that the student sees, and so not cached."""
    return server.teacher_images == "augmented"


def teaches_live(recipe: Recipe) -> bool:
    """Whether teachers' models compute logits of the images that students see."""
    taught = teaching(recipe)
    return taught is not None and (has_live_teachers(taught.server) or generates(recipe))


def has_factors(server: Server) -> bool:
    """Whether students learn factors of the teachers' feature maps."""
    return server.factor_transfer is not None and server.factor_transfer.weight > 0


def adds_terms(server: Server) -> bool:
    """Whether students minimise more than a loss of their logits against targets."""
    buffered = server.buffer is not None and server.buffer.weight > 0
    return bool(server.labels) or buffered or has_factors(server) or has_live_teachers(server)


def without_early_buffer(server: Server, round_: int) -> Server:
    """Return a round's settings, without the buffer if the round is too early to have one."""
    if server.buffer is None or round_ > server.buffer.after:
        return server
    return server.model_copy(update={"buffer": None})
