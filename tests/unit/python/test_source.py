"""A model's source as a plugin file: what it takes along, and what it cannot."""

import linecache
import subprocess
import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.python.source import plugin
from fedstage.settings import plugins
from fedstage.settings.registry import PLUGINS

IMPORTS = """
import math
import os.path as place
import torch
from torch import cat as joined, nn
import torch.nn.functional as F
from torch.nn.functional import relu
"""
NET = """
WIDTHS = {"first": [3, 4]}
KEPT = torch.zeros(2)

def act(x):
    return relu(F.relu(x)) if math.pi else even(3)

def even(n):
    return n == 0 or not even(n - 1)

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, WIDTHS["first"][1])

    def forward(self, x):
        return act(self.layer(x))

Part = Block

class Net(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.block, self.out = Part(math.prod(shape)), nn.Linear(4, classes)

    def forward(self, x):
        return self.out(joined([self.block(x.flatten(1))]))

def built():
    return Net((1, 2, 2), 3)

class Lacking(nn.Module):
    def forward(self, x):
        return x + KEPT

class Undefined(nn.Module):
    def forward(self, x):
        return x + nowhere

class network(nn.Module):
    pass

class Wanting(nn.Module):
    def __init__(self, width):
        super().__init__()
"""


@pytest.fixture(params=["file", "cell"])
def module(request, tmp_path, monkeypatch):
    """A module that only this process can import, or the cells of a notebook."""
    text = IMPORTS + NET
    found = ModuleType("my_own_module" if request.param == "file" else "__main__")
    name = str(tmp_path / "own.py") if request.param == "file" else "<ipython-input-3>"
    if request.param == "file":
        (tmp_path / "own.py").write_text(text)
        found.__file__ = name
    else:
        entry = (len(text), None, text.splitlines(keepends=True), name)
        monkeypatch.setitem(linecache.cache, name, entry)
    monkeypatch.setitem(sys.modules, found.__name__, found)
    exec(compile(text, name, "exec"), vars(found))
    return found


@pytest.fixture
def loaded(tmp_path):
    """Load a plugin file in this process, and say what its model is for a shape and classes."""

    def load(text):
        file = tmp_path / "my_model.py"
        file.write_text(text)
        PLUGINS.named = None
        plugins.load_plugins([str(file)])
        return sys.modules["fedstage_plugins.my_model"].network(None, (1, 2, 2), 3)

    yield load
    plugins.load_plugins([])


@pytest.mark.parametrize("name", ["Net", "built"])
def test_a_model_comes_with_all_that_it_uses(module, loaded, name):
    text = plugin(getattr(module, name))
    assert loaded(text)(torch.zeros(5, 1, 2, 2)).shape == (5, 3)
    assert "import torch.nn.functional as F" in text
    assert "KEPT" not in text
    assert "import os" not in text
    assert text == plugin(getattr(module, name))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("Lacking", r"'KEPT' cannot be taken along.*of type Tensor"),
        ("Undefined", r"Undefined uses 'nowhere'"),
        ("network", r"'network' has two meanings"),
        ("Wanting", r"Wanting\(width\): must need no arguments, or shape, classes"),
    ],
)
def test_what_cannot_be_taken_is_named_in_one_line(module, name, fault):
    with pytest.raises(FedstageError, match=fault) as raised:
        plugin(getattr(module, name))
    assert "\n" not in str(raised.value)


def test_a_model_of_an_installed_package_is_imported(loaded):
    from torchvision.models import squeezenet1_1

    text = plugin(squeezenet1_1)
    assert "from torchvision.models.squeezenet import squeezenet1_1" in text
    assert "class SqueezeNet(" not in text
    assert isinstance(loaded(text), nn.Module)


def test_what_is_no_definition_of_its_own_is_refused():
    class Inner(nn.Module):
        pass

    for model, fault in [
        (Inner, "Inner is defined in a function"),
        (lambda: nn.Linear(2, 2), "must be a class of modules"),
        (nn.Linear(2, 2), "must be a class of modules"),
    ]:
        with pytest.raises(FedstageError, match=fault):
            plugin(model)


def test_importing_the_package_imports_no_torch():
    look = "import sys, fedstage; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
    with pytest.raises(AttributeError):
        __import__("fedstage").nothing  # noqa: B018
