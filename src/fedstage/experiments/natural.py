"""The number of clients of a natural partition, where an experiment leaves it to the data."""

from importlib import import_module
from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError, UncountedClients
from fedstage.settings.data import Data, DataOption
from fedstage.settings.merging import Raw
from fedstage.settings.partitions import Natural
from fedstage.settings.samples import check_clients
from fedstage.settings.validation import validate

KEY = "clients"


def with_clients(where: str, settings: Raw, folder: Path | None) -> Raw:
    """Return settings with the number of `clients`, if the partition is natural and none is given.

    `folder` is the data folder, by default that of the environment.

    Raises
    ------
    FedstageError
        If there is no such number; UncountedClients if it is in files that are missing or invalid.
    """
    partition, data = settings.get("partition"), settings.get("data")
    natural = isinstance(partition, dict) and partition.get("name") == "natural"
    if KEY in settings or not natural or data is None:
        return settings
    chosen = validate(DataOption, {"data": data}, where).data
    for fault in check_clients(chosen, Natural(name="natural")):
        raise FedstageError(f"{where}: {fault}")
    return {**settings, KEY: _count(where, chosen, folder or default_folder())}


def _count(where: str, data: Data, folder: Path | None) -> int:
    if data.centres is not None:
        return data.centres
    if data.clients_in is None:
        raise FedstageError(
            f"{where}: clients: missing; how many data = {data.name} has depends on its settings, "
            "give a number and the stage partition names the right one"
        )
    if folder is None:
        raise UncountedClients(
            f"{where}: clients: missing, and no data folder to count them in; set data_folder in "
            "config.yaml or FEDSTAGE_DATA, or give clients"
        )
    counting = import_module(f"fedstage.{data.clients_in}")  # pyarrow, for this alone
    try:
        count: int = counting.count_clients(data, folder)
    except FedstageError as error:
        raise UncountedClients(
            f"{where}: clients: missing, and not to be counted: {error}"
        ) from None
    return count
