"""Devices for cases that share a program: they count compilations, sleep, or err in company."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Capabilities, CompileError, Options, Program, Sizing
from crosschip.ir import Array, Model

COUNTS = "CROSSCHIP_TEST_COMPILATIONS"
"""The variable of the environment that names the file to which compilations are written."""


class Counting(ReferenceDevice):
    """Writes down how many operations each compilation has."""

    def compile(self, model: Model, options: Options) -> Program:
        if COUNTS in os.environ:
            with Path(os.environ[COUNTS]).open("a") as file:
                file.write(f"{len(model.operations)}\n")
        return super().compile(model, options)


class Fixed(Counting):
    """Compiles known sizes only."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), sizing=Sizing.FIXED, data_dependent_sizes=False)


class Small(Counting):
    """Compiles few operations at a time."""

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)
        if len(model.operations) > 3:
            raise CompileError("the program is too large")
        return program


class Crowded(Counting):
    """Errs where a program has several operations, and is right where it has one."""

    def compile(self, model: Model, options: Options) -> Program:
        return _Spoiled(model) if len(model.operations) > 1 else super().compile(model, options)


class _Spoiled(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [output + output.dtype.type(1) for output in super().run(inputs)]


class Crash(Counting):
    """Ends its process at a certain operator."""

    def compile(self, model: Model, options: Options) -> Program:
        if any(operation.type == "SOFTMAX" for operation in model.operations):
            os.abort()
        return super().compile(model, options)


class Sleepy(ReferenceDevice):
    """Takes longer to compile than a case may take besides."""

    def compile(self, model: Model, options: Options) -> Program:
        time.sleep(1.5)
        return super().compile(model, options)


class Serial(ReferenceDevice):
    """Compiles one model at a time."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), parallel_compile=False)
