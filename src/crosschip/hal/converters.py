"""The table from standard operators to a device's own: one function an operator.

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
"""The rule of a device that an operation breaks; `None` if it breaks none."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """The quantized tensors that a device takes in one place of an operator.

    Attributes:
        types: the element types.
        symmetric: whether the zero point must be 0.
        axis: the axis along which scales may run; `None` if there must be one for the tensor.
    """

    types: frozenset[ElementType]
    symmetric: bool = False
    axis: int | None = None

    def takes(self, operand: Operand) -> bool:
        """Tell whether a quantized tensor is one of them."""
        quantization = operand.type.quantization
        return (
            quantization is not None
            and operand.type.element_type in self.types
            and (quantization.symmetric or not self.symmetric)
            and quantization.axis in (None, self.axis)
        )


Form = Mapping[str, Scheme]
"""A quantized form of an operator: the scheme of each tensor slot, and of `output`."""


@dataclass(frozen=True, slots=True)
class Converter(Generic[Graph, Value]):
    """A device's way of doing one operator.

    Attributes:
        convert: adds an operation to the device's graph and returns its output, or all of them.
        types: the element types that its input tensors may have.
        output_types: the element types that its outputs may have.
        computed: the parameters whose value need not be known at compile time.
        limit: what else the device cannot do.
        nonempty: whether it needs tensors that have elements.
        quantized: the quantized forms that it has.
        bits: how many bits integers may have; `None` if as many as their types.
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
    """A device's converters, by operator.

    Args:
        types: the element types that tensors may have where a converter says nothing else.
        fuses: whether converters look at `fuse_code`; if not, such operations are declined, and
            the runtime splits the activation off.
        device: the name under which packages of operators bring converters of their own for them.
    """

    def __init__(
        self, types: Collection[ElementType], *, fuses: bool = False, device: str = ""
    ) -> None:
        self._types = frozenset(types)
        self._fuses = fuses
        self._table: dict[type[Operation], Converter[Graph, Value]] = {}
        self._device = device

    @classmethod
    def of_packages(cls, device: str) -> Converters[Any, Any]:
        """The converters that packages of operators bring for a device."""
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
        """Decorator: the function converts these operators.

        An operation that does not meet what is said here is declined, with the reason.

        Args:
            operators: the operators.
            types: the element types that input tensors may have; those of the table if left out.
                Quantized tensors are a matter of `quantized` alone, and parameters of none.
            output_types: the element types that outputs may have; if left out, those that input
                tensors may have, so a comparison of reals names bool here.
            computed: the names of parameters that may be computed when the model runs; all others
                must be constants.
            limit: what else cannot be done; returns the rule that an operation breaks, or `None`.
                It is asked after all other rules, so the types are those that are said here.
            nonempty: whether the tensors need elements; those with a size of 0 are then declined.
            quantized: the quantized forms that there are: for each tensor slot, and for `output`,
                the scheme of a quantized tensor. A slot that a form leaves out is not quantized.
            bits: how many bits, besides the sign, integers may have, for the device to compute
                them right; `None` if as many as their types. The runtime then gives it only what
                is shown to fit.
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
        """The names of the operators that the table has."""
        return frozenset(operator.type for operator in self._table)

    @property
    def functions(self) -> Sequence[Callable[[Graph, Any], Value | Sequence[Value]]]:
        """The function for each of these operators."""
        return [converter.convert for converter in self._table.values()]

    def supports(self, operation: Operation) -> Support:
        """Support of the operation by the table, with the reason if there is none."""
        converter = self._converter(operation)
        if converter is None or not isinstance(operation, Operator):
            return Support.no(operation, "", "not implemented on this device", Rule.OPERATOR)
        refusal = self._refusal(operation, converter)
        if refusal is not None:
            return refused(operation, refusal)
        return YES if converter.bits is None else Support(True, bits=converter.bits)

    def convert(self, graph: Graph, operation: Operation) -> Sequence[Value]:
        """Add a supported operation to the device's graph; one value for each output.

        Raises:
            CompileError: the converter failed; the operation is named as the one at fault.
        """
        try:
            converter = self._converter(operation)
            assert converter is not None, "the operation is supported"
            result = converter.convert(graph, operation)
        except ModelFileError:
            raise  # weights whose file has changed are no failure of the device
        except Exception as error:  # converters call the device's own library
            raise CompileError(
                f"{operation.type} {operation.name!r}: {error}", [operation]
            ) from error
        return cast(Sequence[Value], result if isinstance(result, list | tuple) else [result])

    def _converter(self, operation: Operation) -> Converter[Graph, Value] | None:
        own = self._table.get(type(operation))
        if own is None and isinstance(operation, PackagedOperator) and self._device:
            return self.of_packages(self._device)._table.get(type(operation))
        return own

    def _refusal(self, operation: Operator, converter: Converter[Graph, Value]) -> Refusal | None:
        quantized = bool(operation.quantized_inputs()) and not operation.moves_integers
        if quantized and not any(_has_form(operation, form) for form in converter.quantized):
            return _quantized_slot(operation)
        for slot, operand in operation.filled():
            if slot.parameter:
                if not operand.is_constant and slot.name not in converter.computed:
                    detail = "is computed at run time, but must be constant here"
                    return Refusal(slot.name, detail, Rule.COMPUTED)
            elif converter.nonempty and 0 in (operand.type.shape or ()):
                return Refusal(slot.name, "has no elements", Rule.SHAPE)
            elif operand.type.element_type not in converter.types and not quantized:
                return _no_type(slot.name, operand)
        for output in operation.outputs:
            if output.type.element_type not in converter.output_types and not quantized:
                return _no_type("output", output)
        if operation.fused is not Fuse.NONE and not self._fuses:
            detail = f"{operation.fused.name} is not fused on this device"
            return Refusal("fuse_code", detail, Rule.FUSION)
        return converter.limit(operation) if converter.limit else None


_of_packages: dict[str, Converters[Any, Any]] = {}


def refused(operation: Operation, refusal: Refusal) -> Support:
    """The answer that an operation breaks a rule."""
    return Support.no(operation, refusal.slot, refusal.detail, refusal.rule)


def _no_type(slot: str, operand: Operand) -> Refusal:
    return Refusal(slot, f"{operand.type.element_type} is not supported", Rule.ELEMENT_TYPE)


def _has_form(operation: Operator, form: Form) -> bool:
    """Tell whether the tensors of an operation are those of a quantized form."""
    named = [(slot.name, o) for slot, o in operation.filled() if not slot.parameter]
    named += [("output", output) for output in operation.outputs]
    return all(
        form[name].takes(operand) if name in form else operand.type.quantization is None
        for name, operand in named
    )


def _quantized_slot(operation: Operator) -> Refusal:
    slot = next(slot for slot, operand in operation.filled() if slot.reads_reals(operand))
    operand = operation.operand(slot.name)
    assert operand is not None, "it is filled"
    detail = f"is quantized ({operand.type}), in a form that this device does not have"
    return Refusal(slot.name, detail, Rule.QUANTIZATION)
