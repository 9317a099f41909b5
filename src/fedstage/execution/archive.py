"""``fedstage archive``: results without tensors, to continue in another folder."""

import io
import json
import tarfile
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.results import BY_METHOD, RESULTS
from fedstage.storage.archived import LIST, archived_sources, recorded_sources
from fedstage.storage.derived import stored_records
from fedstage.storage.files import replacing
from fedstage.storage.seals import sealed

#: Where Snakemake has the params of each file.
_NOTES = Path(".snakemake/metadata")
_TENSORS = ".safetensors"


def archive(output: Path) -> str:
    """Write an archive of the working folder's results; return a line about it.

    The archive has all files below `results` except tensors, with their times, and Snakemake's
    notes on them. When it is unpacked in another folder, finished runs are not trained again.

    Raises
    ------
    FedstageError
        If there are no results, or the archive's name does not end in .tar.gz.
    """
    if not output.name.endswith(".tar.gz"):
        raise FedstageError(f"-o = {output}: must end in .tar.gz")
    if not Path(RESULTS).is_dir():
        raise FedstageError(f"{Path(RESULTS).absolute()}: no such folder; call it where results is")
    files = sorted(_files())
    there = set(files)
    sources = archived_sources() | recorded_sources(stored_records(Path()).values(), there)
    listed = {path: source for path, source in sources.items() if path in there}
    with replacing(output) as temporary, tarfile.open(temporary, "w:gz") as packed:
        for path in (*files, *(note for note, file in _notes() if file in there)):
            packed.add(path, recursive=False)
        content = json.dumps(sealed({"sources": listed}, LIST), indent=2).encode()
        about = tarfile.TarInfo(LIST)
        about.size = len(content)
        packed.addfile(about, io.BytesIO(content))
    return f"{len(files)} files, {output.stat().st_size / 1e6:.1f} MB, are in {output}"


def _files() -> Iterator[str]:
    """Yield the files below `results` that an archive has."""
    for path in Path(RESULTS).rglob("*"):
        name = path.as_posix()
        hidden = any(part.startswith(".") for part in path.parts)
        if path.is_symlink() or not path.is_file() or hidden or name.startswith(f"{BY_METHOD}/"):
            continue
        if path.suffix != _TENSORS and name != LIST:
            yield name


def _notes() -> Iterator[tuple[str, str]]:
    """Yield the files with Snakemake's notes, and the file that each note is about.

    A note is named after its file in Base64; a name that is too long is split into folders
    (``@...``).
    """
    for path in sorted(_NOTES.rglob("*")):
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(_NOTES).parts)
            yield path.as_posix(), urlsafe_b64decode(name).decode()
