"""Packages that only some settings need, and that users install with an extra."""

from collections.abc import Iterator

from fedstage.settings.base import Settings

#: The extra of each package.
EXTRAS = {"torchao": "int8", "transformers": "text"}


def needed_packages(settings: Settings, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting that needs such a package, ``quantisation = int8``, with the package."""
    if settings.package is not None:
        yield f"{key} = {getattr(settings, 'name', settings)}", settings.package
    for name, field in type(settings).model_fields.items():
        value, at = getattr(settings, name, None), field.alias or name
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Settings):
                yield from needed_packages(part, f"{key}.{at}" if key else at)
