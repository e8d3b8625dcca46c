"""Convolutions of rows, which models hold as convolutions of images that are one pixel high.

In the graph of a whole model, ONNX Runtime keeps the channels of images in blocks, which is faster
than what it does with rows, if there is enough to compute: what brings rows into blocks and back
takes as long as a few thousand weights. In the graphs of nodes it does not: there what makes images
of rows, and rows of images, only takes time, and keeps it from fusing activations into
convolutions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ir import Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Squeeze, Unsqueeze

_FEW = 4096
"""The most weights with which a convolution is not worth blocks of channels."""
_HEIGHT = 2
_IMAGE_AXES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A convolution of rows.

    Attributes:
        image: the convolution of images that stands for it.
        input: the rows.
        filter: its filter; still that for images if it is a constant.
    """

    image: Conv2D
    input: Operand
    filter: Operand

    def add(self, graph: Graph) -> str:
        """Add it to a graph; returns the name of its output."""
        graph.label = self.image.name
        bias = [graph[self.image.bias]] if self.image.bias else []
        return graph.add(
            "Conv",
            graph[self.input],
            self._filter(graph),
            *bias,
            group=self.image.group,
            pads=self.image.pads[2:],
            strides=self.image.strides[1:],
            dilations=self.image.dilations[1:],
        )

    def _filter(self, graph: Graph) -> str:
        value = self.filter.value
        if value is None or value.ndim < _IMAGE_AXES:
            return graph[self.filter]
        return graph.once((Row, self.filter), lambda: graph.constant(value.squeeze(_HEIGHT)))


@dataclass(frozen=True, slots=True)
class Rows:
    """The convolutions of rows in a model.

    Attributes:
        made: each, by the operation that makes its output.
        within: the other operations that nothing needs any more.
    """

    made: Mapping[Operation, Row]
    within: frozenset[Operation]


def rows_in(model: Model, *, blocks: bool) -> Rows:
    """Find the convolutions of rows.

    Args:
        model: where to look.
        blocks: whether those are left out that are faster as convolutions of images, with their
            channels in blocks.
    """
    made: dict[Operation, Row] = {}
    for operation in model.operations:
        row = _row(operation, model)
        if row is not None and not (blocks and _gains_by_blocks(row.image)):
            made[operation] = row
    images = [row.image for row in made.values()]
    read = Counter(operand for image in images for operand in image.inputs)
    unneeded = [
        operation
        for operation in model.operations
        if isinstance(operation, Unsqueeze)
        and read[operation.outputs[0]] == model.uses.get(operation.outputs[0])
    ]
    return Rows(made, frozenset([*images, *unneeded]))


def _row(operation: Operation, model: Model) -> Row | None:
    """The convolution of rows whose output an operation makes; `None` if it makes none."""
    if not isinstance(operation, Squeeze) or not _is_of_height(operation):
        return None
    image = model.producers.get(operation.input)
    if not isinstance(image, Conv2D) or model.uses[image.outputs[0]] > 1:
        return None
    input, filter = _rows_of(image.input, model), _rows_of(image.filter, model)
    if input is None or filter is None or image.auto_pad is not AutoPad.NONE or any(image.pads[:2]):
        return None
    return Row(image, input, filter)


def _gains_by_blocks(image: Conv2D) -> bool:
    shape = image.filter.type.static_shape
    return shape is None or image.group > 1 or math.prod(shape) > _FEW


def _rows_of(operand: Operand, model: Model) -> Operand | None:
    """What becomes an operand by getting a height, or the constant that has one of 1."""
    producer = model.producers.get(operand)
    if isinstance(producer, Unsqueeze) and _is_of_height(producer):
        return producer.input
    is_row = operand.is_constant and (operand.type.shape or ())[_HEIGHT:-1] == (1,)
    return operand if is_row else None


def _is_of_height(operation: Squeeze | Unsqueeze) -> bool:
    return [axis % _IMAGE_AXES for axis in operation.axes] == [_HEIGHT]
