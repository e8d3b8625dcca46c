"""The dynamic dimensions of a model's inputs, with the shapes that the program lists for them."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.apis.nnadapter.enumerations import NNADAPTER_UNKNOWN
from crosschip.apis.nnadapter.graph import NNAdapterOperand
from crosschip.apis.nnadapter.results import invalid_dimensions
from crosschip.ir import Dim, symbol


class DynamicDimensions:
    """The dynamic dimensions of a model's inputs.

    The i-th listed shapes of all inputs belong together. Therefore two dimensions that are equal in
    every combination become one symbol, and a dimension that never differs becomes static.

    Args:
        inputs: the inputs.

    Raises:
        Failure: inputs list different numbers of shapes.
    """

    def __init__(self, inputs: Sequence[NNAdapterOperand]) -> None:
        counts = {operand.type.dimensions.dynamic_count for operand in inputs} - {0}
        if len(counts) > 1:
            raise invalid_dimensions(f"inputs allow different numbers of shapes: {sorted(counts)}")
        self._count = max(counts, default=0)
        self._names: dict[tuple[int, ...], str] = {}
        self._by_axis: dict[tuple[NNAdapterOperand, int], Dim] = {}
        for operand in inputs:
            for axis, size in enumerate(operand.type.dimensions.data):
                if size == NNADAPTER_UNKNOWN:
                    self._by_axis[operand, axis] = self._dimension(operand, axis)

    def of(self, operand: NNAdapterOperand, axis: int) -> Dim:
        """Return the size of an axis; for an operand that is no input, a symbol of its own."""
        return self._by_axis.get((operand, axis), symbol(f"{operand.name}_{axis}"))

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The minimum and maximum of each dimension with listed shapes, by name."""
        return {name: (min(values), max(values)) for values, name in self._names.items()}

    @property
    def profiles(self) -> tuple[dict[str, int], ...]:
        """The values of the dynamic dimensions in each combination of shapes, by name."""
        if not self._names:
            return ()
        return tuple(
            {name: values[index] for values, name in self._names.items()}
            for index in range(self._count)
        )

    def _dimension(self, operand: NNAdapterOperand, axis: int) -> Dim:
        shapes = operand.type.dimensions.dynamic_data
        if not shapes:
            return symbol(f"{operand.name}_{axis}")
        values = tuple(shape[axis] for shape in shapes)
        if len(set(values)) == 1:
            return values[0]
        return symbol(self._names.setdefault(values, f"{operand.name}_{axis}"))
