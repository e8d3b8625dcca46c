"""Devices whose vendor's compiler reads whole ONNX files: the second road of the driver contract.

A device is a subclass of `Toolchain` that says what its compiler reads (`dialect`), and a script of
a few functions (`script`) that drives the vendor's tool, in a process and perhaps a Python of its
own:

    def about() -> dict            {"version": …}: what the tool calls itself
    def check(folder, settings)    optional: why nodes of `model.onnx` are refused, by node name
    def compile(folder, settings)  reads `model.onnx`, returns the names of the files to keep
    def load(folder, settings)     makes ready to run what those files hold
    def run(inputs)                the outputs, in order: lists of arrays

What it raises is a refusal. `load` is called in the process that has just compiled, too.
"""

from crosschip.hal.onnx.standalone import Dialect
from crosschip.hal.toolchain.device import Toolchain

__all__ = ["Dialect", "Toolchain"]
