"""Tell which share of lines the tests have run, by file; a share below the least one fails.

    uv run python .ci/covered.py MEASURED.json LEAST

`MEASURED.json` is what slipcover writes with --json.
"""

import json
import sys
from pathlib import Path

SHOWN = 20  # files with the most lines that no test has run


def main() -> None:
    """Print the files that lack most, and the share of all lines."""
    measured, least = json.loads(Path(sys.argv[1]).read_text()), float(sys.argv[2])
    lacking = sorted(measured["files"].items(), key=lambda item: len(item[1]["missing_lines"]))
    for file, lines in lacking[: -SHOWN - 1 : -1]:
        print(f"{len(lines['missing_lines']):6} {file}")
    share = measured["summary"]["percent_covered"]
    print(f"{share:.1f} % of all lines are covered")
    if share < least:
        sys.exit(f"{least:g} % are required")


if __name__ == "__main__":
    main()
