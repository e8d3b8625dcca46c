"""Devices whose vendor's compiler reads files.

A device is a subclass of `Toolchain`, which writes ONNX as its compiler reads it (`dialect`), or of
`FileToolchain`, which writes whatever its compiler reads (`write`); and a script of a few functions
(`script`) that drives the vendor's tool, in a process and perhaps a Python of its own:

    def about() -> dict            {"version": …}: what the tool calls itself
    def check(folder, settings)    optional, for ONNX: why nodes are refused, by node name
    def compile(folder, settings)  reads what was written, returns the names of the files to keep
    def load(folder, settings)     makes ready to run what those files hold
    def run(inputs)                the outputs, in order: lists of arrays

What it raises is a refusal. `load` is called in the process that has just compiled, too.
"""

from crosschip.devices.kits.onnx.standalone import Dialect
from crosschip.devices.kits.toolchain.device import Toolchain
from crosschip.devices.kits.toolchain.files import FileToolchain

__all__ = ["Dialect", "FileToolchain", "Toolchain"]
