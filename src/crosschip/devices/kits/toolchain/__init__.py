"""Devices with a vendor's offline compiler.

A device is a subclass of `Toolchain`, which writes ONNX files in a `dialect`, or of
`FileToolchain`, which writes other files (`write`). Its `script` of a few functions drives the
vendor's tool in a process, and possibly a Python installation, of its own:

    def describe() -> dict         return {"version": …}: the version of the tool
    def check(folder, settings)    optional, for ONNX: return refusal reasons by node name
    def compile(folder, settings)  compile the written files, return the names of the files to keep
    def load(folder, settings)     load these files for runs
    def run(inputs)                run: take and return a list of arrays, in order

Exceptions of the script are refusals. `load` is also called in the process that has just compiled.
"""

from crosschip.devices.kits.onnx.standalone import Dialect
from crosschip.devices.kits.toolchain.device import Toolchain
from crosschip.devices.kits.toolchain.files import FileToolchain

__all__ = ["Dialect", "FileToolchain", "Toolchain"]
