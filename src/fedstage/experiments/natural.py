"""The number of clients of a natural partition, where an experiment leaves it to the data."""

from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.data.layouts import count_clients, in_layout
from fedstage.errors import FedstageError, UncountedClients
from fedstage.plan.data_files import data_file
from fedstage.settings.data import Data, DataOption
from fedstage.settings.data_sets import Sized
from fedstage.settings.merging import Raw
from fedstage.settings.partitions import Natural
from fedstage.settings.samples import check_clients
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json

KEY = "clients"


def with_clients(where: str, settings: Raw, folder: Path | None) -> Raw:
    """Return settings with the number of `clients`, if the partition is natural and none is given.

    `folder` is the data folder, by default the environment's. If the files are missing, the number
    is taken from the data set as it was made, if its results are here.

    Raises
    ------
    FedstageError
        If there is no such number; UncountedClients if its files are missing or invalid.
    """
    partition, data = settings.get("partition"), settings.get("data")
    natural = isinstance(partition, dict) and partition.get("name") == "natural"
    if KEY in settings or not natural or data is None:
        return settings
    chosen = validate(DataOption, {"data": data}, where).data
    for fault in check_clients(chosen, Natural(name="natural")):
        raise FedstageError(f"{where}: {fault}")
    count: int | None
    try:
        count = _count(where, chosen, folder or default_folder())
    except UncountedClients:
        if (count := _made(chosen)) is None:
            raise
    return {**settings, KEY: count}


def _made(data: Data) -> int | None:
    """Return how many clients a data set had when it was made, None if it was not made here.

    A `division` gives its clients other samples than the data set names.
    """
    path = Path(data_file(data, "info"))
    divided = isinstance(data, Sized) and data.division is not None
    if divided or not path.is_file():
        return None
    return len(load_json(path).get("client_names", ())) or None


def _count(where: str, data: Data, folder: Path | None) -> int:
    if data.centres is not None:
        return data.centres
    if not in_layout(data):
        raise FedstageError(
            f"{where}: clients: not given; how many data = {data.name} has depends on its "
            "settings, give a number and the stage partition names the right one"
        )
    if folder is None:
        raise UncountedClients(
            f"{where}: clients: not given, and no data folder to count them in; set data_folder in "
            "config.yaml or FEDSTAGE_DATA, or give clients"
        )
    try:
        return count_clients(data, folder)
    except FedstageError as error:
        raise UncountedClients(
            f"{where}: clients: not given, and cannot be counted: {error}"
        ) from None
