"""The edges of discriminators and their odds: which files each of their stages reads.

As in `fedstage.plan.edges`, one function for each stage returns its inputs by option.
"""

from fedstage.plan import artefacts, data_files, discriminators
from fedstage.plan.edges import Files, settings_files
from fedstage.settings.lines import Line


def public_generator(line: Line) -> Files:
    """Return what the server trains its generator on."""
    return _settings(line) | {"public": artefacts.public_file(line)}


def client_discriminator(line: Line) -> Files:
    """Return what a client tells apart: its own samples, and images of the generator."""
    return {
        **_settings(line),
        "generator": discriminators.generator_file(line),
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
    }


def client_odds(line: Line) -> Files:
    """Return what the odds of all clients on the public images are computed from."""
    return {
        **_settings(line),
        "discriminators": discriminators.discriminators(line),
        "public": artefacts.public_file(line),
    }


def _settings(line: Line) -> Files:
    return settings_files(discriminators.folder(line), line.data)
