"""A complete device around a vendor's compiler, which toy_tool.py plays and drives."""

from pathlib import Path

from crosschip.devices.kits.toolchain import Dialect, Toolchain
from crosschip.hal import Kind
from crosschip.ir import ElementType


class ToyCompiler(Toolchain):
    """A chip that adds, multiplies and clips in float16, and the compiler that comes with it."""

    vendor = "Toy Semiconductors"
    kind = Kind.ACCELERATOR
    package = "toy-compiler"
    module = "toy_tool"
    script = Path(__file__).with_name("toy_tool.py")
    dialect = Dialect(
        opset=19,
        types=frozenset({ElementType.FLOAT16, ElementType.FLOAT32}),
        operators=frozenset({"Add", "Mul", "Relu", "Identity"}),
        max_rank=4,
    )
