"""Help says in full what a command does, and with `--json` an error is a document."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Crosschip


@pytest.mark.parametrize("group", [[], ["cache"], ["capi"], ["driver"], ["opdef"]])
def test_help_of_commands_is_not_cut(
    crosschip: Crosschip, monkeypatch: pytest.MonkeyPatch, group: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = crosschip(*group, "--help")
    assert outcome.status == 0
    commands = outcome.out.partition("Commands:\n")[2]
    assert commands
    assert "..." not in commands
    assert "…" not in commands


def test_help_of_a_command_is_its_first_sentence(crosschip: Crosschip) -> None:
    assert (
        "Compile a model, run it once on files or random inputs, and show the devices."
        in " ".join(crosschip("--help").out.split())
    )


@pytest.mark.parametrize("command", ["run", "bench", "explain", "profile"])
def test_an_error_is_a_document(crosschip: Crosschip, command: str) -> None:
    outcome = crosschip(command, "nothing.onnx", "--json")
    assert outcome.status == 1
    assert outcome.document == {
        "error": "nothing.onnx: there is no such file or folder",
        "type": "ModelFileError",
    }
    assert outcome.err == "error: nothing.onnx: there is no such file or folder\n"


def test_an_error_without_the_option_is_no_document(crosschip: Crosschip) -> None:
    outcome = crosschip("run", "nothing.onnx")
    assert (outcome.status, outcome.out) == (1, "")
