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
from crosschip.opdef.custom.inference import Outputs, placeholder
from crosschip.opdef.custom.restrictions import Restrictions
from crosschip.opdef.custom.rules import Rules
from crosschip.opdef.custom.slots import (
    DefinedSlot,
    check_rank,
    default_array,
    stored_of,
    words,
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
    """Base of the operators of packages; `Package.defines` gives a subclass its definition.

    A subclass defines `reference`, which computes the outputs from arrays, or `decompose`, which
    builds the same from other operators, or both; and `infer_shape`, `infer_element_type` and
    `output_count` where the definition's constraints do not say what its outputs are. In them, a
    parameter reads as a value and an input as an operand, each by the name of its slot.

    Attributes:
        definition: its definition.
        rules: the constraints that are enforced.
        output_rules: what they say about each output.
        restrictions: what backends say of it, by name in lower case.
        sources: the bytes that define it.
        functions: the compiled code of its functions for devices, by the device's name.
    """

    __slots__ = ()
    definition: ClassVar[OpDef]
    rules: ClassVar[Rules]
    output_rules: ClassVar[Sequence[Outputs]] = ()
    restrictions: ClassVar[Mapping[str, Restrictions]] = {}
    sources: ClassVar[tuple[bytes, ...]] = ()
    functions: ClassVar[Mapping[str, bytes]] = {}
    _code: ClassVar[str]

    if TYPE_CHECKING:

        def __getattr__(self, slot: str) -> Any:
            """The slots are made from the definition."""

    @classmethod
    def code(cls) -> str:
        if "_code" not in vars(cls):  # one that it inherits is another operator's
            cls._code = code.digest(cls, cls.written())
        return cls._code

    @classmethod
    def written(cls) -> Sequence[bytes]:
        """All that says what it computes, besides the code of its class."""
        functions = (
            part
            for name, function_code in cls.functions.items()
            for part in (name.encode(), function_code)
        )
        return (*cls.sources, *functions)

    @classmethod
    def has_function(cls, device: str, function: Callable[..., Any]) -> None:
        """Take note of a function for a device, which counts as its code."""
        cls.functions = {**cls.functions, device: code.compiled(function)}
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
        types = self._guarded("inferring", super().infer)
        operands = self._operands_by_tensor()
        for rules, own in self._output_types(types):
            operands_out = [Operand(rules.tensor.name, type_) for type_ in own]
            for output in operands_out:
                check_rank(f"{self.type}.{output.name}", rules.tensor, output)
                if stored_of(output) not in rules.stored:
                    actual, accepted = words([stored_of(output)]), words(rules.stored)
                    raise ElementTypeError(
                        f"{self.type}.{output.name}: is {accepted}, not {actual}"
                    )
            operands[rules.tensor.name] = operands_out
        self.rules.check_outputs(self.type, operands)
        return types

    def infer_shape(self) -> Shape | Sequence[Shape | None]:
        return [output.type.shape for output in self._inferred()]

    def infer_element_type(self) -> ElementType | Sequence[ElementType]:
        operands = self._operands_by_tensor()
        return [
            rules.inferred_type(operands)
            for rules, count in zip(self.output_rules, self._counts(operands), strict=True)
            for _ in range(count)
        ]

    def output_count(self) -> int:
        return sum(self._counts(self._operands_by_tensor()))

    def kernel(self) -> Kernel:
        return self.rules.guarding(self, super().kernel())

    def _try_decompose(self, b: Builder) -> tuple[Operand, ...] | None:
        if type(self).decompose is Operator.decompose:
            return None
        outputs = self._guarded(
            "decomposing", lambda: super(CustomOperator, self)._try_decompose(b)
        )
        return outputs if outputs is None else self.rules.asserted(self, b, outputs)

    def restriction(self, device: str) -> tuple[str, str] | None:
        own = device.partition("@")[0].partition("/")[0].partition(":")[0]
        restrictions = self.restrictions.get(own.lower())
        return (
            None if restrictions is None else restrictions.broken(self, self._operands_by_tensor())
        )

    @classmethod
    def generated_examples(cls) -> tuple[Example, ...]:
        from crosschip.opdef.custom.examples import drawn

        return drawn(cls)

    def _output_types(
        self, types: Sequence[TensorType]
    ) -> Iterator[tuple[Outputs, Sequence[TensorType]]]:
        """What the definition says of the outputs, with their types; the last may repeat.

        Raises:
            ModelError: there are more outputs, or fewer, than the definition has.
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
        return [rules.number(operands) for rules in self.output_rules]

    def _inferred(self) -> Iterator[Operand]:
        """The outputs one by one; rules about later ones may speak of those before."""
        operands = self._operands_by_tensor()
        for rules, count in zip(self.output_rules, self._counts(operands), strict=True):
            try:
                shape: Shape | None = rules.inferred_shape(operands)
            except UnknownRank:
                shape = None
            operand = placeholder(rules, shape, rules.inferred_type(operands))
            operands[rules.tensor.name] = [operand] * count
            yield from [operand] * count

    def _operands_by_tensor(self) -> dict[str, Sequence[Operand]]:
        """What fills each tensor of the definition; of parameters, also their defaults."""
        by_tensor: dict[str, Sequence[Operand]] = {}
        for name, slot_name in self.tensors.items():
            slot = getattr(type(self), slot_name)
            filled = self._operands(slot)
            if not filled and isinstance(slot, Parameter) and slot.default is not None:
                filled = (constant(slot.encode(slot.default), name),)
            by_tensor[name] = filled
        return by_tensor

    def _guarded(self, doing: str, way: Callable[[], T]) -> T:
        """What a package's own function returns; whatever it raises is an error of the operator."""
        try:
            return way()
        except (Error, ComputedParameter, UnknownRank, KeyboardInterrupt):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ModelError(f"{self.type} {self.name!r}: {doing} failed: {message}") from error
