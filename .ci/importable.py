"""Exit status 1 if tests import something at their top that is not installed.

Modules of the package are imported, with all that these import; others are only looked up.
"""

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

files, needed = [*Path("tests").rglob("*.py")], set()
for file in files:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            needed |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            needed.add(str(node.module))
for name in sorted(needed):
    if name.startswith("fedstage"):
        import_module(name)
own = {"tests", *(file.stem for file in files), *(file.parent.name for file in files)}
others = {name.partition(".")[0] for name in needed} - own
lacking = sorted(name for name in others if find_spec(name) is None)
sys.exit(f"not installed: {', '.join(lacking)}" if lacking else 0)
