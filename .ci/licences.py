"""Check the licence of every installed package against those that may be used.

    uv run python .ci/licences.py

A package says its licence in one of three places: an expression (PEP 639), classifiers, or free
text. What says nothing readable stands in `STATED`, with what its repository says.
"""

import re
import sys
from importlib.metadata import Distribution, distributions

#: Identifiers of SPDX that an expression may consist of. NVIDIA's libraries may be used and passed
#: on as they are, which is what torch's own dependencies do.
ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python",
        "ISC", "LLVM-exception", "LicenseRef-NVIDIA-Proprietary", "MIT", "MIT-0", "MIT-CMU",
        "MPL-2.0", "PSF-2.0", "Zlib",
    }
)  # fmt: skip

#: Identifiers for the texts of classifiers and of the field `License`.
TEXTS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "NVIDIA Proprietary Software": "LicenseRef-NVIDIA-Proprietary",
    "Python Software Foundation License": "PSF-2.0",
}

#: Packages whose metadata say nothing, nothing exact, or list all licences of their parts.
STATED = {
    "conda-inject": "MIT",
    "cuda-toolkit": "LicenseRef-NVIDIA-Proprietary",
    "docutils": "BSD-2-Clause",  # public domain and BSD; what is under the GPL is no part of wheels
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
    "snakemake-interface-report-plugins": "MIT",
    "snakemake-interface-scheduler-plugins": "MIT",
    "snakemake-interface-storage-plugins": "MIT",
    "torchao": "BSD-3-Clause",
}


def licence_of(package: Distribution) -> str:
    """Return the licence of a package as an expression, or as it says it; empty if it does not."""
    metadata = package.metadata
    if stated := STATED.get(package.name.lower()):
        return stated
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = metadata.get_all("Classifier") or []
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    exact = [text for text in named if text != "Other/Proprietary License"]
    texts = exact or (metadata.get("License") or "").strip().splitlines()[:1]
    return " AND ".join(TEXTS.get(text, text) for text in texts)


def is_allowed(expression: str) -> bool:
    """Whether all licences of an expression are allowed, or all of one of its choices.

    Within brackets no choice is made: there all must be allowed.
    """
    choices = [expression] if "(" in expression else expression.split(" OR ")
    named = [set(re.split(r" (?:AND|WITH|OR) |[()]", one)) - {""} for one in choices]
    return any(one and one <= ALLOWED for one in named)


def main() -> int:
    """Print the licence of each package, and those not allowed; return whether there are any."""
    found = {package.name: licence_of(package) for package in distributions()}
    refused = {name: text for name, text in sorted(found.items()) if not is_allowed(text)}
    for name, text in sorted(found.items()):
        print(f"{name}: {text}")
    for name, text in refused.items():
        print(f"{name}: licence {text!r} is not among those that may be used", file=sys.stderr)
    print(f"{len(found)} packages, {len(refused)} with a licence that is not allowed")
    return min(len(refused), 1)


if __name__ == "__main__":
    sys.exit(main())
