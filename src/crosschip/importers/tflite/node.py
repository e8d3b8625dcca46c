"""View of one operator of a file for import functions: operands, options, and a builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crosschip.flatbuffer import Table
from crosschip.flatbuffer.schemas.tflite.enumerations import ActivationFunctionType
from crosschip.importers.facts import fold_outputs
from crosschip.importers.table import ImportTable
from crosschip.ir import (
    Array,
    Builder,
    ControlFlow,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.channels_last import (
    channels_first_axes,
    channels_last_axes,
    transpose_type,
)
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import reals
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret, parameters

if TYPE_CHECKING:
    from crosschip.importers.tflite.subgraph import Subgraph

Options = TypeVar("Options", bound=Table)


@dataclass(frozen=True, slots=True)
class Resource:
    """A variable or a table that operators refer to by a handle.

    Attributes:
        key: what identifies it in the model.
    """

    key: str


Result = Operand | Resource | None
Import = Callable[["Node"], Result | Sequence[Result]]
"""Import function: appends the operations of an operator and returns its outputs, in order.

The results need not have the types that the file declares: `Subgraph` quantizes, dequantizes or
reinterprets them. `None` for an output that nothing computes.
"""

TABLE: ImportTable[Import] = ImportTable()
"""The import functions of all operators; custom operators have the key `custom.NAME`."""

imports = TABLE.imports

TAKES_COMPLEX = {"CAST", "COMPLEX_ABS", "IMAG", "REAL", "SQUEEZE"}
"""The operators whose import functions take complex numbers."""

ON_STORED_INTEGERS = {
    *("FLOOR_DIV", "FLOOR_MOD", "NEG", "REDUCE_WINDOW", "SCATTER_ND", "STABLEHLO_ADD"),
    *("STABLEHLO_MULTIPLY", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER", "WHERE"),
}
"""The operators whose kernels in LiteRT ignore quantization: they compute with stored integers."""

_FUSES = {
    ActivationFunctionType.RELU: Fuse.RELU,
    ActivationFunctionType.RELU_N1_TO_1: Fuse.RELU1,
    ActivationFunctionType.RELU6: Fuse.RELU6,
}


class Node:
    """One operator of a TensorFlow Lite file.

    Attributes:
        type: the operator; `custom.NAME` for a custom one.
        version: the version of the operator.
        inputs: the operands; `None` for omitted ones. Quantized ones represent reals.
        outputs: the types that the file declares for the outputs; `None` for handles.
        intermediates: the types that the file declares for tensors within the operator.
        custom_options: the bytes of a custom operator's options.
        names: an iterator over names for the operations.
        subgraph: the subgraph, which imports others and has the variables.
    """

    __slots__ = (
        "_builder",
        "_options",
        "custom_options",
        "input_indices",
        "inputs",
        "intermediates",
        "names",
        "output_indices",
        "outputs",
        "subgraph",
        "type",
        "version",
    )

    def __init__(
        self,
        type_: str,
        version: int,
        options: Table | None,
        custom_options: bytes,
        inputs: Sequence[Operand | Resource | None],
        input_indices: Sequence[int],
        outputs: Sequence[TensorType | None],
        output_indices: Sequence[int],
        intermediates: Sequence[TensorType],
        builder: Builder,
        names: Iterator[str],
        subgraph: Subgraph,
    ) -> None:
        self.type = type_
        self.version = version
        self.custom_options = custom_options
        self.inputs = inputs
        self.input_indices = input_indices
        self.outputs = outputs
        self.output_indices = output_indices
        self.intermediates = intermediates
        self.names = names
        self.subgraph = subgraph
        self._options = options
        self._builder = builder

    def __getitem__(self, index: int) -> Operand:
        """Return a required input.

        Raises:
            ModelError: the input is omitted, or is no tensor.
        """
        operand = self.optional(index)
        if operand is None:
            raise ModelError(f"input {index} is required")
        return operand

    def optional(self, index: int) -> Operand | None:
        """Return an input that may be omitted."""
        operand = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(operand, Resource):
            raise ModelError(f"input {index} is a handle of {operand.key!r}, but must be a tensor")
        return operand

    def values(self, first: int = 0) -> list[Operand | Resource]:
        """Return the tensors and the handles from an input on."""
        inputs = self.inputs[first:]
        return [self[first + n] if each is None else each for n, each in enumerate(inputs)]

    def all_inputs(self) -> list[Operand]:
        """Return all inputs of a variadic operator, at least one."""
        return [self[index] for index in range(max(1, len(self.inputs)))]

    def resource(self, index: int) -> Resource:
        """Return an input that is a handle.

        Raises:
            ModelError: the input is omitted, or is a tensor.
        """
        resource = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(resource, Resource):
            raise ModelError(f"input {index} must be a handle of a variable or a table")
        return resource

    def is_complex(self, index: int) -> bool:
        """Return whether an input has complex numbers, as pairs along one more axis, the last."""
        return self.subgraph.is_complex(self.input_indices[index])

    def value(self, index: int, what: str) -> Array:
        """Return the elements of a constant input; `what` names it in the message.

        Raises:
            UnsupportedError: it is computed when the model runs.
        """
        operand = self[index]
        if operand.value is None:
            raise UnsupportedError(f"{what} is computed when the model runs")
        return operand.value

    def options(self, type_: type[Options]) -> Options:
        """Return the options of a builtin operator; all have their defaults if a file omits them.

        Raises:
            ModelError: the file has options of another operator.
        """
        if self._options is None:
            return type_()
        if not isinstance(self._options, type_):
            raise ModelError(f"has {type(self._options).__name__}, but needs {type_.__name__}")
        return self._options

    def output(self, index: int = 0) -> TensorType:
        """Return the type that the file declares for an output.

        Raises:
            ModelError: there is no such output, or it is a handle.
        """
        type_ = self.outputs[index] if index < len(self.outputs) else None
        if type_ is None:
            raise ModelError(f"output {index} is required, and must be a tensor")
        return type_

    def fuse_code(self, code: int) -> Fuse:
        """Return the fused activation for a code of the schema.

        TANH and SIGN_BIT are `NONE`: LiteRT's kernels that clip their results ignore them.
        """
        return _FUSES.get(ActivationFunctionType(code), Fuse.NONE)

    def activate(self, operand: Operand, code: int) -> Operand:
        """Apply a fused activation to the result of the last operation.

        A quantized output is quantized before it is clipped, as LiteRT does.
        """
        fuse = self.fuse_code(code)
        if fuse is Fuse.NONE:
            return operand
        operand = self.fit(operand, self.output())
        low, high = fuse.bounds
        return self.add(Clip, operand, low, high, quantization=operand.type.quantization)

    def add(self, operator: type[Operator], *arguments: object, **named: Any) -> Operand:
        """Append an operation with one output and return that output.

        An operation whose result is static is replaced by a constant. On quantized inputs the
        output is float32, unless `quantization` is passed or the operator only moves elements.
        """
        return self.add_all(operator, *arguments, **named)[0]

    def add_all(
        self, operator: type[Operator], *arguments: object, **named: Any
    ) -> tuple[Operand, ...]:
        """Append an operation with any number of outputs and return them."""
        name = next(self.names)
        results = self._builder.add_all(operator, *arguments, name=name, **named)
        constants = fold_outputs(self._builder.operations[-1])
        if constants is None:
            return results
        self._builder.operations.pop()
        return constants

    def control(self, make: Callable[[str], ControlFlow]) -> tuple[Operand, ...]:
        """Append a control-flow operation that `make` builds for a name."""
        return self._builder.insert(make(next(self.names)))

    def constant(self, value: Array, quantization: Quantization | None = None) -> Operand:
        """Return an operand for an array."""
        return constant(value, next(self.names), quantization)

    def transpose(self, operand: Operand, axes: Sequence[int]) -> Operand:
        """Permute the axes of an operand and of its quantization; constants stay constants."""
        if list(axes) == sorted(axes):
            return operand
        if operand.value is None:
            return self.add(Transpose, operand, tuple(axes))
        array = np.ascontiguousarray(np.transpose(np.asarray(operand.value), axes))
        return constant(array, operand.name, transpose_type(operand.type, axes).quantization)

    def channels_first(self, operand: Operand) -> Operand:
        """Return an image with its channels on axis 1, from [N, …, C]."""
        return self.transpose(operand, channels_first_axes(_rank(operand)))

    def channels_last(self, operand: Operand) -> Operand:
        """Return an image with its channels on the last axis, from [N, C, …]."""
        return self.transpose(operand, channels_last_axes(_rank(operand)))

    def dequantized(self, operand: Operand) -> Operand:
        """Return the reals that an operand represents."""
        return operand if operand.type.quantization is None else self.add(Dequantize, operand)

    def real_constant(self, operand: Operand) -> Operand:
        """Return the reals that an operand represents; those of a constant are a constant."""
        quantization = operand.type.quantization
        if quantization is None or operand.value is None:
            return self.dequantized(operand)
        return constant(reals(operand.value, quantization).astype(np.float32), operand.name)

    def integers(self, operand: Operand) -> Operand:
        """Return the stored integers of an operand, without their quantization."""
        if operand.type.quantization is None:
            return operand
        if operand.is_constant:
            plain = replace(operand.type, quantization=None)
            return Operand(operand.name, plain, operand.content)
        return self.add(Reinterpret, operand, bare=True)

    def reinterpret(self, operand: Operand, quantization: Quantization | None) -> Operand:
        """Return the same stored integers with another quantization."""
        if operand.type.quantization == quantization:
            return operand
        if quantization is None:
            return self.integers(operand)
        if operand.is_constant:
            type_ = replace(operand.type, quantization=quantization)
            return Operand(operand.name, type_, operand.content)
        return self.add(Reinterpret, operand, **parameters(quantization))

    def fit(self, operand: Operand, type_: TensorType) -> Operand:
        """Return a result with the element type and the quantization that the file declares.

        Reals are quantized, if possible by the last operation itself; integers are reinterpreted.

        Raises:
            ModelError: the result has another element type.
        """
        actual, quantization = operand.type, type_.quantization
        if actual.element_type is type_.element_type:
            return self.reinterpret(operand, quantization)
        if quantization is not None and actual.element_type is ElementType.FLOAT32:
            return self._quantize(operand, quantization, type_.element_type)
        if actual.quantization is not None and type_.element_type is ElementType.FLOAT32:
            return self.add(Dequantize, operand)
        raise ModelError(f"gives {actual}, but the file declares {type_}")

    def _quantize(self, real: Operand, quantization: Quantization, dtype: ElementType) -> Operand:
        """Quantize the result of the last operation, within it if it reads such integers."""
        last = self._builder.operations[-1] if self._builder.operations else None
        if isinstance(last, Operator) and real in last.outputs and quantization.axis is None:
            sources = last.quantized_inputs()
            if sources and sources[0].type.element_type is dtype:
                return self._quantize_output(last, real, quantization)
        return self.add(
            Quantize, real, **parameters(quantization), dtype=dtype, quantization=quantization
        )

    def _quantize_output(
        self, operation: Operator, real: Operand, quantization: Quantization
    ) -> Operand:
        """Replace the last operation by one that quantizes an output."""
        dtype = operation.quantized_inputs()[0].type.element_type
        stored = replace(real.type, element_type=dtype, quantization=quantization)
        rounded = Operand(real.name, stored)
        outputs = tuple(rounded if each is real else each for each in operation.outputs)
        declared = tuple(each.type.quantization for each in outputs)
        rounding = type(operation)(operation.name, operation.inputs, outputs, declared)
        self._builder.operations[-1] = rounding.standing_for(operation)
        return rounded


def _rank(operand: Operand) -> int:
    if operand.type.shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    return len(operand.type.shape)
