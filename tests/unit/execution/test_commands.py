"""Commands that are no stages."""

import inspect
from importlib import import_module

import pytest

from fedstage.execution.cli import COMMANDS, main


def test_every_command_has_a_function_of_its_options(capsys):
    for name, command in COMMANDS.items():
        options = [about.get("dest", option.lstrip("-")) for option, about in command.options]
        module, _, called = command.answer.rpartition(".")
        function = getattr(import_module(module), called)
        parameters = inspect.signature(function).parameters.values()
        required = {one.name for one in parameters if one.default is inspect.Parameter.empty}
        assert required <= {*options} <= {one.name for one in parameters}, name
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert f"fedstage {name} " in capsys.readouterr().out
