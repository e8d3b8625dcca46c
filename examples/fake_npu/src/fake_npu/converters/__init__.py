"""The table from standard operators to the DDK's: one function an operator, a file a family."""

from fake_npu.converters import (  # noqa: F401  # they fill the table
    activation,
    arithmetic,
    convolution,
    joining,
    layout,
    matrix,
    padding,
    pooling,
    quantization,
)
from fake_npu.converters.table import converters

__all__ = ["converters"]
