"""The folder of a run in rounds, and the settings that reach its files."""

from collections.abc import Iterable
from typing import Any

from fedstage.plan import data_files
from fedstage.plan.graph import Folder, folder_of
from fedstage.plan.identity import training_name
from fedstage.plan.restriction import restricted
from fedstage.settings.equivalences import OF_TEACHERS, simplest
from fedstage.settings.exchange import exchanges_features, exchanges_logits
from fedstage.settings.lines import Line, re_estimates
from fedstage.settings.public import CoreSamples, Generated, HeldOut
from fedstage.settings.server import Server

#: Settings about teachers and students, and about heads that models share.
TEACHING = (
    "ensemble", "global_trainer", "distillation", "server", "public", "generator", "head_transfer",
)  # fmt: skip
_BASE = (*Line.model_fields.keys() - set(TEACHING),)


def _of_all(config: Line) -> Iterable[str]:
    """Return the settings that reach all files of a run's rounds."""
    yield from _BASE
    if exchanges_logits(config):  # with which clients learn, too
        yield from ("ensemble", "distillation", "server", "public")
    elif re_estimates(config):
        yield "public"
    if exchanges_features(config):
        yield from (f"server.{name}" for name in Server.model_fields.keys() - set(OF_TEACHERS))


FOLDER = Folder("training", Line, training_name, _of_all)


def owners(config: Line) -> tuple[Line, Line]:
    """Return what owns the files that a teacher or a head reaches, and what owns the others."""
    simple = simplest(config)
    of_all = frozenset(_of_all(simple))
    return restricted(simple, of_all.union(TEACHING)), restricted(simple, of_all)


def training_folder(config: Line) -> str:
    """Return the folder of a run: of its scores, and of all that a teacher or a head reaches."""
    return folder_of(FOLDER, owners(config)[0])


def training_id(config: Line) -> str:
    """Return the name of a run's folder."""
    return training_folder(config).rpartition("/")[2]


def info(config: Line) -> str:
    """Return the description of the clients' data set."""
    return data_files.data_file(config.data, "info")


def teaching(config: Line, *place: Any) -> Iterable[str]:
    """Return the settings that stages read that teach, and all files after them."""
    return TEACHING


def public_id(config: Line) -> str:
    """Name the public images: `held_out`, `core`, or the folder of another data set."""
    if isinstance(config.public, HeldOut | CoreSamples):
        return config.public.name
    assert not isinstance(config.public, Generated), "a round's generator writes no images"
    return data_files.data_id(config.public)


def public_file(config: Line) -> str:
    """Return the public images."""
    return data_files.samples_file(config, public_id(config))
