"""Packages that only one export needs."""

from importlib import import_module

from fedstage.errors import FedstageError


def check_extra(package: str) -> None:
    """Refuse an export whose package is missing; its extra has the name of the export.

    Raises
    ------
    FedstageError
        If the package cannot be imported.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise FedstageError(
            f"--to {package}: needs the package {package} ({error}); install the extra {package}: "
            f"uv sync --extra {package}"
        ) from None
