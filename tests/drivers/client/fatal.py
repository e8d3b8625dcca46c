"""A device that ends its process, or never ends, on certain inputs and models."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from tests.modelling import DelegatingDevice, python_path

from crosschip.hal import Options, Program
from crosschip.ir import Array, Model
from crosschip.ir.entry_points import clear_entry_points

SEGFAULT, EXIT, LOOP, FREEZE, WORK = 1001.0, 1002.0, 1003.0, 1004.0, 1005.0
"""Inputs that begin with these; of the last, it only lets nothing else run for a while."""

DEADLY, ENDLESS = "EXP", "LOG"
"""The operators that it dies of compiling, and never ends to compile."""


class FatalProgram(Program):
    """A program that computes what another does, if it comes to that."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, inputs: Sequence[Array]) -> Sequence[Any]:
        first = float(inputs[0].reshape(-1)[0])
        if first == SEGFAULT:
            ctypes.string_at(0)
        if first == EXIT:
            os._exit(3)
        while first == LOOP:
            pass
        if first == FREEZE:
            ctypes.PyDLL(None).sleep(3600)  # and keeps Python's lock
        if first == WORK:
            sum(repeat(1, 300_000_000))  # which keeps it, too
        return self._program.run(inputs)


class FatalDevice(DelegatingDevice):
    """The device."""

    def compile(self, model: Model, options: Options) -> Program:
        if any(operation.type == DEADLY for operation in model.operations):
            os._exit(4)
        while any(operation.type == ENDLESS for operation in model.operations):
            time.sleep(1)
        return FatalProgram(super().compile(model, options))


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the device be found, as `fatal`, here and in processes that this one starts."""
    about = folder / "fatal-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fatal\nVersion: 1.0\n")
    entry = "[crosschip.devices]\nfatal = tests.drivers.client.fatal:FatalDevice\n"
    (about / "entry_points.txt").write_text(entry)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), python_path()]))
    monkeypatch.syspath_prepend(str(folder))
    clear_entry_points()
