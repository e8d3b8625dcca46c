"""Table of a device's converters: one function per standard operator.

Example:
    converters = Converters[MyGraph, MyTensor](types=FLOAT32_ONLY)

    @converters.converts(LeakyRelu)
    def leaky_relu(g: MyGraph, op: LeakyRelu) -> MyTensor:
        return g.add("LeakyRelu", g[op.input], alpha=op.alpha)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from crosschip.hal.device import CompileError
from crosschip.hal.support import YES, Refusal, Rule, Support
from crosschip.ir import ElementType, ModelFileError, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import ALL_TYPES
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.slots import Fuse

Graph = TypeVar("Graph")
Value = TypeVar("Value")
Op = TypeVar("Op", bound=Operator)

Limit = Callable[[Any], Refusal | None]
"""Returns the rule of a device that an operation breaks, or `None`."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Quantized tensors that a device accepts in a slot.

    Attributes:
        types: the element types.
        symmetric: whether the zero point must be 0.
        axis: the axis that scales may run along; `None` if there must be one scale per tensor.
    """

    types: frozenset[ElementType]
    symmetric: bool = False
    axis: int | None = None

    def takes(self, operand: Operand) -> bool:
        """Return whether the scheme accepts a quantized tensor."""
        quantization = operand.type.quantization
        return (
            quantization is not None
            and operand.type.element_type in self.types
            and (quantization.symmetric or not self.symmetric)
            and quantization.axis in (None, self.axis)
        )


Form = Mapping[str, Scheme]
"""Quantized form of an operator: the scheme of each tensor slot, and of `output`."""


@dataclass(frozen=True, slots=True)
class Converter(Generic[Graph, Value]):
    """Converter of one operator, and the operations that it supports.

    Attributes:
        convert: adds an operation to the device's graph and returns its output, or all outputs.
        types: the supported element types of input tensors.
        output_types: the supported element types of outputs.
        computed: the parameters that need not be constant.
        limit: checks further restrictions.
        nonempty: whether tensors without elements are unsupported.
        quantized: the supported quantized forms.
        bits: the number of bits of integers without the sign; `None` for all bits of the type.
    """

    convert: Callable[[Graph, Any], Value | Sequence[Value]]
    types: frozenset[ElementType]
    output_types: frozenset[ElementType]
    computed: frozenset[str]
    limit: Limit | None
    nonempty: bool
    quantized: Sequence[Form]
    bits: int | None


class Converters(Generic[Graph, Value]):
    """Converters of a device, by operator.

    Args:
        types: the supported element types, unless a converter names others.
        fuses: whether converters handle `fuse_code`. If not, operations with a fused activation are
            rejected, and the runtime splits off the activation.
        device: the name under which operator packages register converters for the device.
    """

    def __init__(
        self, types: Collection[ElementType], *, fuses: bool = False, device: str = ""
    ) -> None:
        self._types = frozenset(types)
        self._fuses = fuses
        self._table: dict[type[Operation], Converter[Graph, Value]] = {}
        self._device = device

    def for_device(self, device: str) -> Converters[Graph, Value]:
        """Return a copy of the table for a device, which may replace entries."""
        table = Converters[Graph, Value](self._types, fuses=self._fuses, device=device)
        table._table.update(self._table)
        return table

    @classmethod
    def of_packages(cls, device: str) -> Converters[Any, Any]:
        """Return the converters that operator packages register for a device."""
        return _of_packages.setdefault(device, Converters(ALL_TYPES))

    def converts(
        self,
        *operators: type[Op],
        types: Collection[ElementType] | None = None,
        output_types: Collection[ElementType] | None = None,
        computed: Collection[str] = (),
        limit: Callable[[Op], Refusal | None] | None = None,
        nonempty: bool = False,
        quantized: Sequence[Form] = (),
        bits: int | None = None,
    ) -> Callable[[Callable[[Graph, Op], Any]], Callable[[Graph, Op], Any]]:
        """Register the decorated function as the converter of operators.

        An operation outside these restrictions is rejected with a reason.

        Args:
            operators: the operators.
            types: the element types of input tensors; by default those of the table. They do not
                apply to quantized tensors (see `quantized`) and to parameters.
            output_types: the element types of outputs; by default those of input tensors. A
                comparison of reals names bool here.
            computed: the parameters that may be computed at run time; all others must be constant.
            limit: checks further restrictions: returns the rule that an operation breaks, or
                `None`. It is called last, so all other restrictions hold.
            nonempty: whether tensors with a size of 0 are rejected.
            quantized: the supported quantized forms: the scheme of the quantized tensor in each
                tensor slot, and in `output`. A slot that a form omits is not quantized.
            bits: the number of bits, without the sign, of integers that the device computes
                correctly; `None` for all bits of the type. The runtime then places only operations
                on values that provably fit.
        """
        input_types = self._types if types is None else frozenset(types)

        def register(convert: Callable[[Graph, Op], Any]) -> Callable[[Graph, Op], Any]:
            entry: Converter[Graph, Value] = Converter(
                convert,
                input_types,
                input_types if output_types is None else frozenset(output_types),
                frozenset(computed),
                limit,
                nonempty,
                quantized,
                bits,
            )
            self._table.update(dict.fromkeys(operators, entry))
            return convert

        return register

    @property
    def operators(self) -> frozenset[str]:
        """Return the names of the operators in the table."""
        return frozenset(operator.type for operator in self._table)

    @property
    def functions(self) -> Sequence[Callable[[Graph, Any], Value | Sequence[Value]]]:
        """Return the converter function of each operator in the table."""
        return [converter.convert for converter in self._table.values()]

    def supports(self, operation: Operation) -> Support:
        """Return whether the table supports an operation, with the reason if it does not."""
        converter = self._converter(operation)
        if converter is None or not isinstance(operation, Operator):
            return Support.no(operation, "", "not implemented on this device", Rule.OPERATOR)
        refusal = self._refusal(operation, converter)
        if refusal is not None:
            return to_support(operation, refusal)
        return YES if converter.bits is None else Support(True, bits=converter.bits)

    def convert(self, graph: Graph, operation: Operation) -> Sequence[Value]:
        """Add a supported operation to the device's graph; return one value per output.

        Raises:
            CompileError: the converter failed; the error names the operation.
        """
        try:
            converter = self._converter(operation)
            assert converter is not None, "the operation is supported"
            result = converter.convert(graph, operation)
        except ModelFileError:
            raise  # changed files of weights are not failures of the device
        except Exception as error:  # converters call the device's own library
            raise CompileError(
                f"{operation.type} {operation.name!r}: {error}", [operation]
            ) from error
        return cast(Sequence[Value], result if isinstance(result, list | tuple) else [result])

    def _converter(self, operation: Operation) -> Converter[Graph, Value] | None:
        converter = self._table.get(type(operation))
        if converter is None and isinstance(operation, PackagedOperator) and self._device:
            return self.of_packages(self._device)._table.get(type(operation))
        return converter

    def _refusal(self, operation: Operator, converter: Converter[Graph, Value]) -> Refusal | None:
        quantized = bool(operation.quantized_inputs()) and not operation.moves_integers
        if quantized and not any(_has_form(operation, form) for form in converter.quantized):
            return _unsupported_form(operation)
        for slot, operand in operation.filled():
            if slot.parameter:
                if not operand.is_constant and slot.name not in converter.computed:
                    detail = "is computed at run time, but must be constant here"
                    return Refusal(slot.name, detail, Rule.COMPUTED)
            elif converter.nonempty and 0 in (operand.type.shape or ()):
                return Refusal(slot.name, "has no elements", Rule.SHAPE)
            elif operand.type.element_type not in converter.types and not quantized:
                return _unsupported_type(slot.name, operand)
        for output in operation.outputs:
            if output.type.element_type not in converter.output_types and not quantized:
                return _unsupported_type("output", output)
        if operation.fused is not Fuse.NONE and not self._fuses:
            detail = f"{operation.fused.name} is not fused on this device"
            return Refusal("fuse_code", detail, Rule.FUSION)
        return converter.limit(operation) if converter.limit else None


_of_packages: dict[str, Converters[Any, Any]] = {}


def to_support(operation: Operation, refusal: Refusal) -> Support:
    """Return the answer that an operation breaks a rule."""
    return Support.no(operation, refusal.slot, refusal.detail, refusal.rule)


def _unsupported_type(slot: str, operand: Operand) -> Refusal:
    return Refusal(slot, f"{operand.type.element_type} is not supported", Rule.ELEMENT_TYPE)


def _has_form(operation: Operator, form: Form) -> bool:
    """Return whether the tensors of an operation match a quantized form."""
    named = [(slot.name, o) for slot, o in operation.filled() if not slot.parameter]
    named += [("output", output) for output in operation.outputs]
    return all(
        form[name].takes(operand) if name in form else operand.type.quantization is None
        for name, operand in named
    )


def _unsupported_form(operation: Operator) -> Refusal:
    slot = next(slot for slot, operand in operation.filled() if slot.reads_reals(operand))
    operand = operation.operand(slot.name)
    assert operand is not None, "it is filled"
    detail = f"is quantized ({operand.type}), in a form that this device does not have"
    return Refusal(slot.name, detail, Rule.QUANTIZATION)
