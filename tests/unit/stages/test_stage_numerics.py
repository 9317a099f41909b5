"""Numerics reach whatever a stage computes."""

import ast

from fedstage.plan.source import PACKAGE

#: What computes with a model, in the precision and order that it is told.
COMPUTING = {
    "train",
    "training",
    "compute_logits",
    "re_estimate",
    "early_stopping",
    "take",
    "new_model",
}
#: Where that is called from.
COMPUTE = ("stages/*.py", "algorithm/**/*.py")


def calls():
    paths = [path for name in COMPUTE for path in PACKAGE.glob(name)]
    for path in sorted(paths):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in COMPUTING:
                yield f"{path.stem}: {ast.unparse(node)}"


def test_no_stage_forgets_the_numerics_of_its_recipe():
    """They have a default, which would be taken in silence."""
    found = list(calls())
    assert {call.split(": ")[1].split("(")[0] for call in found} == COMPUTING
    without = [call for call in found if "numerics" not in call and "'meta'" not in call]
    # INT8 is made of the weights as they are, whatever the precision of the recipe.
    assert without == ["local_models: new_model(client_model(recipe, client), info, device)"]
