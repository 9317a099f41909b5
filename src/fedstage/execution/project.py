"""Projects: folders of users, in which Snakemake runs the workflow that comes with this package."""

import shutil
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.settings.validation import as_typed

_PACKAGE = Path(__file__).parents[1]
#: Snakefiles, methods and experiments: in the installed package or, in a clone, next to `src`.
WORKFLOW = _PACKAGE / "workflow"
if not WORKFLOW.is_dir():
    WORKFLOW = _PACKAGE.parents[1] / "workflow"
SNAKEFILE = str(WORKFLOW / "Snakefile")


def workflow_folder() -> Path:
    """Return the folder `workflow` of the clone one works in, or else the one of this package."""
    here = Path("workflow")
    return here if (here / "methods.yaml").is_file() else WORKFLOW


def make_project(folder: Path, *left_out: str) -> None:
    """Make a project: with Snakefile, profiles and examples; what is in the folder already stays.

    `left_out` are names in the folder `workflow/project`.
    """
    _copy_folder(WORKFLOW / "project", folder, *left_out)
    _copy_folder(WORKFLOW / "profiles", folder / "profiles")


def _copy_folder(source: Path, target: Path, *left_out: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__", *left_out)
    shutil.copytree(source, target, ignore=ignored, copy_function=_copy, dirs_exist_ok=True)


def _copy(source: str, target: str) -> None:
    if not Path(target).exists():
        shutil.copyfile(source, target)


def init(folder: Path) -> str:
    """Make a project with the quickstart and a method of one's own: ``fedstage init``.

    Raises
    ------
    FedstageError
        If the folder has a workflow already.
    """
    for name in ("Snakefile", "config.yaml"):
        if (folder / name).exists():
            raise FedstageError(f"{folder / name}: is there already; name another folder")
    make_project(folder)
    config = folder / "config.yaml"
    text = config.read_text(encoding="utf-8").replace("plugins: []", "plugins: [my_methods]")
    config.write_text(text, encoding="utf-8")
    return f"cd {folder} && {as_typed('snakemake', '--cores', 'all')}"
