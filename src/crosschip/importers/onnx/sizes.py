"""The shapes of model inputs: given sizes, named sizes, and sizes that nothing is said about."""

from __future__ import annotations

import re

from crosschip.importers.onnx.tensors import text
from crosschip.ir import Dim, Dimension, Shape, symbol, unknown
from crosschip.onnx_messages import TensorShapeProto

_NOT_IN_A_NAME = re.compile(r"[^\w.]+")


class Sizes:
    """The named sizes of one model, so that two sizes of one name are the same."""

    def __init__(self) -> None:
        self._symbols: dict[str, Dimension] = {}
        self._names: set[str] = set()

    def shape(self, proto: TensorShapeProto) -> Shape:
        """The shape that a model declares for an input."""
        return tuple(map(self._size, proto.dim))

    def _size(self, proto: TensorShapeProto.Dimension) -> Dim:
        if proto.HasField("dim_value"):
            return proto.dim_value if proto.dim_value >= 0 else unknown()
        return self._named(text(proto.dim_param))

    def _named(self, name: str) -> Dimension:
        """A size called `name`, or as much like it as lets expressions of sizes be read.

        A name without a letter or digit, such as `?`, says nothing.
        """
        if name not in self._symbols:
            stem = _NOT_IN_A_NAME.sub("_", name).strip("_")
            if not stem:
                return unknown()
            if not (stem[0].isalpha() or stem[0] == "_"):
                stem = f"size_{stem}"
            free = stem if stem not in self._names else f"{stem}_{len(self._names)}"
            self._names.add(free)
            self._symbols[name] = symbol(free)
        return self._symbols[name]
