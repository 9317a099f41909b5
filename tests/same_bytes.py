"""Are the results of two working folders the same, byte by byte?

    python tests/same_bytes.py digests [FOLDER] > before.txt     a SHA-256 of every artefact
    python tests/same_bytes.py compare before.txt [FOLDER]       what differs; exit status 1 if any

Make the same targets in both folders first, for a change of structure before and after it:

    targets='["quickstart", "fedeed_*/smoke", "fens_*/smoke", "fedsdd_table[!3]*/smoke"]'
    snakemake --cores all --workflow-profile workflow/profiles/default \
        --config "targets=$targets" 'execution={"granularity": "segment"}'

An artefact is a file below `results` whose bytes follow from settings and source: not the logs with
their records, which hold times, nor the descriptions of runs and claims that tables are made from.

What a file states of itself is left out, since it changes with the source: a digest is of the
tensors with the other metadata, of the values of a table with its schema, and of what JSON and YAML
hold. It follows from the file alone, so it is the same whichever version of the package is there.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

#: Folders below `results` of files that hold times, or are no results.
NOT_COMPARED = ("logs", "descriptions", "round_times", "costs", "report")
#: Ends of files of scores and costs, which hold times too; what tables show of scores is compared.
_TIMED = (".scores.parquet", ".costs.parquet")
#: The keys of what a file states of itself: in the metadata of tensors, and in JSON and YAML.
_STATED = ("file", "source", "sha256")
_SEAL = "fedstage"


def artefacts(folder: Path) -> Iterator[Path]:
    """Yield the artefacts of a working folder, in order."""
    results = folder / "results"
    for path in sorted(results.rglob("*")):
        inside = path.relative_to(results)
        hidden = any(part.startswith(".") for part in inside.parts)
        timed = inside.parts[0] in NOT_COMPARED or path.name.endswith(_TIMED)
        if path.is_file() and not hidden and not timed:
            yield path


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every artefact's content by its path below `results`."""
    return {
        path.relative_to(folder / "results").as_posix(): hashlib.sha256(content(path)).hexdigest()
        for path in artefacts(folder)
    }


def content(path: Path) -> bytes:
    """Return the content of a file without what it states of itself."""
    raw = path.read_bytes()
    if path.suffix == ".safetensors":
        start = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:start])
        notes = header.get("__metadata__", {})
        header["__metadata__"] = {key: notes[key] for key in notes if key not in _STATED}
        return _json(header) + raw[start:]
    if path.suffix == ".parquet":
        table = pq.ParquetFile(pa.BufferReader(raw)).read(use_threads=False)
        return _json([str(table.schema.remove_metadata()), table.to_pydict()])
    if path.suffix in (".json", ".yaml"):
        read = json.loads(raw) if path.suffix == ".json" else yaml.safe_load(raw)
        return _json({key: read[key] for key in read if key != _SEAL})
    return raw


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def compare(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return a line for each artefact that is missing, new, or has other content."""
    missing = [f"missing  {name}" for name in before.keys() - after.keys()]
    new = [f"new      {name}" for name in after.keys() - before.keys()]
    shared = before.keys() & after.keys()
    differing = [f"differs  {name}" for name in shared if before[name] != after[name]]
    return sorted([*missing, *new, *differing])


def read(path: Path) -> dict[str, str]:
    """Read what `digests` has printed."""
    rows = (line.split("  ", 1) for line in path.read_text().splitlines())
    return {name: digest for digest, name in rows}


def main() -> int:
    """Print digests, or differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    printed = commands.add_parser("digests")
    compared = commands.add_parser("compare")
    compared.add_argument("before", type=Path)
    for one in (printed, compared):
        one.add_argument("folder", type=Path, nargs="?", default=Path())
    options = parser.parse_args()
    found = digests(options.folder)
    if options.command == "digests":
        sys.stdout.writelines(f"{digest}  {name}\n" for name, digest in found.items())
        return 0
    differences = compare(read(options.before), found)
    print(*differences, f"{len(found)} artefacts, {len(differences)} differences", sep="\n")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
