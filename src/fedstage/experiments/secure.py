"""Check that secure aggregation is used only where the server needs just sums of updates."""

from fedstage.errors import FedstageError
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.exposure import exposed, predicting
from fedstage.settings.merging import Raw
from fedstage.settings.recipes import LocalRecipe
from fedstage.settings.runs import RunLength


def check_secure(where: str, settings: Raw, recipe: AnyRecipe, length: RunLength) -> None:
    """Refuse secure aggregation where a stage of the server reads what a single client sends."""
    if not (settings.get("aggregation") or {}).get("secure") or isinstance(recipe, LocalRecipe):
        return
    if seen := exposed(predicting(recipe, length)):
        raise FedstageError(
            f"{where}: aggregation.secure: stage {seen.stage} reads {seen.file}, which contains "
            "individual client data; secure aggregation requires methods whose server needs only "
            "sums"
        )
