"""Operators whose slots, rules and inference come from a definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from crosschip.ir import (
    Builder,
    ElementType,
    ElementTypeError,
    Error,
    ModelError,
    Operand,
    Shape,
    TensorType,
    constant,
)
from crosschip.opdef.custom import code
from crosschip.opdef.custom.inference import OutputRules, placeholder
from crosschip.opdef.custom.restrictions import Restrictions
from crosschip.opdef.custom.rules import Rules
from crosschip.opdef.custom.slots import (
    DefinedSlot,
    check_rank,
    default_array,
    describe_types,
    stored_of,
)
from crosschip.opdef.definitions import OpDef
from crosschip.opdef.evaluation import Operands
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.examples import Example
from crosschip.ops.definition.kernel import Kernel
from crosschip.ops.definition.operator import Operator, UnknownRank
from crosschip.ops.definition.slots import ComputedParameter, Parameter

T = TypeVar("T")


class CustomOperator(PackagedOperator):
    """Base of packages' operators; `Package.defines` adds a definition to a subclass.

    A subclass defines `reference`, which computes the outputs from arrays, or `decompose`, which
    builds them from other operators, or both. Where the definition's constraints do not determine
    the outputs' types, it also defines `infer_shape`, `infer_element_type` and `output_count`. In
    these methods, the name of a slot gives a parameter's value or an input's operand.

    Attributes:
        definition: the definition.
        rules: the enforced constraints.
        output_rules: the outputs with the expressions from the constraints.
        restrictions: the backends' declarations, by device name in lower case.
        sources: the parts of the definition that belong to the cache key.
        functions: the bytecode of device functions, by device name.
    """

    __slots__ = ()
    definition: ClassVar[OpDef]
    rules: ClassVar[Rules]
    output_rules: ClassVar[Sequence[OutputRules]] = ()
    restrictions: ClassVar[Mapping[str, Restrictions]] = {}
    sources: ClassVar[tuple[bytes, ...]] = ()
    functions: ClassVar[Mapping[str, bytes]] = {}
    _code: ClassVar[str]

    if TYPE_CHECKING:

        def __getattr__(self, slot: str) -> Any:
            """Return the slot of this name, which the definition adds."""

    @classmethod
    def code(cls) -> str:
        if "_code" not in vars(cls):  # an inherited digest is that of another operator
            cls._code = code.digest(cls, cls.key_parts())
        return cls._code

    @classmethod
    def key_parts(cls) -> Sequence[bytes]:
        """Return the parts of the cache key other than the code of the class."""
        functions = (
            part
            for name, function_code in cls.functions.items()
            for part in (name.encode(), function_code)
        )
        return (*cls.sources, *functions)

    @classmethod
    def add_function(cls, device: str, function: Callable[..., Any]) -> None:
        """Add a device function to the cache key."""
        cls.functions = {**cls.functions, device: code.bytecode(function)}
        if "_code" in vars(cls):
            del cls._code

    @classmethod
    def computes(cls) -> bool:
        return getattr(cls, "reference", None) is not None

    @classmethod
    def bind(
        cls, name: str, arguments: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Operand | None, ...]:
        inputs = list(super().bind(name, arguments, named))
        for slot in cls.slots:
            if isinstance(slot, DefinedSlot) and slot.optional and not slot.variadic:
                default = default_array(slot.tensor, slot.stored)
                if inputs[slot.index] is None and default is not None:
                    inputs[slot.index] = constant(default, f"{name}.{slot.name}")
        return tuple(inputs)

    def validate(self) -> None:
        super().validate()
        self.rules.check(self.type, self._operands_by_tensor())

    def infer(self) -> tuple[TensorType, ...]:
        types = self._call("inferring", super().infer)
        operands = self._operands_by_tensor()
        for rules, output_types in self._output_types(types):
            operands_out = [Operand(rules.tensor.name, type_) for type_ in output_types]
            for output in operands_out:
                check_rank(f"{self.type}.{output.name}", rules.tensor, output)
                if stored_of(output) not in rules.stored:
                    actual, accepted = (
                        describe_types([stored_of(output)]),
                        describe_types(rules.stored),
                    )
                    raise ElementTypeError(
                        f"{self.type}.{output.name}: is {accepted}, not {actual}"
                    )
            operands[rules.tensor.name] = operands_out
        self.rules.check_outputs(self.type, operands)
        return types

    def infer_shape(self) -> Shape | Sequence[Shape | None]:
        return [output.type.shape for output in self._inferred_outputs()]

    def infer_element_type(self) -> ElementType | Sequence[ElementType]:
        operands = self._operands_by_tensor()
        return [
            rules.infer_type(operands)
            for rules, count in zip(self.output_rules, self._counts(operands), strict=True)
            for _ in range(count)
        ]

    def output_count(self) -> int:
        return sum(self._counts(self._operands_by_tensor()))

    def kernel(self) -> Kernel:
        return self.rules.guard_kernel(self, super().kernel())

    def _try_decompose(self, b: Builder) -> tuple[Operand, ...] | None:
        if type(self).decompose is Operator.decompose:
            return None
        outputs = self._call("decomposing", lambda: super(CustomOperator, self)._try_decompose(b))
        return outputs if outputs is None else self.rules.add_assertions(self, b, outputs)

    def restriction(self, device: str) -> tuple[str, str] | None:
        name = device.partition("@")[0].partition("/")[0].partition(":")[0]
        restrictions = self.restrictions.get(name.lower())
        return (
            None
            if restrictions is None
            else restrictions.violation(self, self._operands_by_tensor())
        )

    @classmethod
    def generated_examples(cls) -> tuple[Example, ...]:
        from crosschip.opdef.custom.examples import find_examples

        return find_examples(cls)

    def _output_types(
        self, types: Sequence[TensorType]
    ) -> Iterator[tuple[OutputRules, Sequence[TensorType]]]:
        """Yield each output of the definition with its types; the last one may be repeated.

        Raises:
            ModelError: the number of types differs from the definition.
        """
        last = len(self.output_rules) - 1
        if len(types) < last or (len(types) != last + 1 and not self.repeats):
            raise ModelError(f"{self.type}: has {last + 1} outputs, but {len(types)} are inferred")
        for index, rules in enumerate(self.output_rules):
            yield (
                rules,
                types[index:] if self.repeats and index == last else types[index : index + 1],
            )

    def _counts(self, operands: Operands) -> list[int]:
        return [rules.operand_count(operands) for rules in self.output_rules]

    def _inferred_outputs(self) -> Iterator[Operand]:
        """Yield the inferred outputs in order; rules may refer to earlier ones."""
        operands = self._operands_by_tensor()
        for rules, count in zip(self.output_rules, self._counts(operands), strict=True):
            try:
                shape: Shape | None = rules.infer_shape(operands)
            except UnknownRank:
                shape = None
            operand = placeholder(rules, shape, rules.infer_type(operands))
            operands[rules.tensor.name] = [operand] * count
            yield from [operand] * count

    def _operands_by_tensor(self) -> dict[str, Sequence[Operand]]:
        """Return the operands of each tensor of the definition, with defaults of parameters."""
        by_tensor: dict[str, Sequence[Operand]] = {}
        for name, slot_name in self.tensors.items():
            slot = getattr(type(self), slot_name)
            operands = self._operands(slot)
            if not operands and isinstance(slot, Parameter) and slot.default is not None:
                operands = (constant(slot.encode(slot.default), name),)
            by_tensor[name] = operands
        return by_tensor

    def _call(self, action: str, function: Callable[[], T]) -> T:
        """Call a package's function; convert its exceptions to `ModelError`."""
        try:
            return function()
        except (Error, ComputedParameter, UnknownRank, KeyboardInterrupt):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ModelError(f"{self.type} {self.name!r}: {action} failed: {message}") from error
