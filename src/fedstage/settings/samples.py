"""Which models and settings go with which samples."""

from typing import TYPE_CHECKING

from fedstage.settings.data import AgNews, samples_of
from fedstage.settings.models import SAMPLES_OF_MODELS, DistilBert, Model

if TYPE_CHECKING:
    from fedstage.settings.lines import Line
    from fedstage.settings.one_shot import OneShotLine


def _check_vocabulary(model: DistilBert, data: AgNews) -> None:
    if model.vocabulary < data.vocabulary_size:
        raise ValueError(
            f"model.vocabulary = {model.vocabulary}: must be at least data.vocabulary_size = "
            f"{data.vocabulary_size}, one for each token"
        )


def check_samples(line: "Line | OneShotLine", models: tuple[Model, ...]) -> None:
    """Refuse models and settings that the kind of the samples does not go with."""
    kind = samples_of(line.data)
    for model in models:
        allowed = SAMPLES_OF_MODELS.get(model.name, ("images",))
        if kind not in allowed:
            raise ValueError(
                f"model = {model.name!r}: takes {' or '.join(allowed)}, and the samples of "
                f"data = {line.data.name} are {kind}"
            )
        if model.name == "distilbert" and line.data.name == "ag_news":
            _check_vocabulary(model, line.data)
    only = f"only for images, and the samples of data = {line.data.name} are {kind}"
    if kind != "images" and line.numerics.memory_format != "contiguous":
        raise ValueError(f"numerics.memory_format = {line.numerics.memory_format!r}: {only}")
    if kind in ("bags", "tokens") and line.numerics.cuda_graphs:
        raise ValueError(
            f"numerics.cuda_graphs = true: not for the {kind} of data = {line.data.name}, whose "
            "steps are not all of one shape"
        )
    for key, part in (("client", line.client), ("server", line.server)):
        if kind != "images" and part is not None and part.augmentation != "none":
            raise ValueError(f"{key}.augmentation = {part.augmentation!r}: {only}")
