"""Names of operators in other systems, with their codes, operands' order and parameters there.

    map_operator(Relu, nnadapter=NNAdapter(65), nnrt=(NNRt(47, "RELU"),), onnx=("Relu",))

The mappings of the operators of `crosschip.ops.standard.FAMILY` are in
`crosschip.mapping.standard.FAMILY`, which is imported when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.registry import import_family

if TYPE_CHECKING:
    from crosschip.mapping.translation import Rule
    from crosschip.ops.definition.operator import Operator


@dataclass(frozen=True, slots=True)
class NNAdapter:
    """NNAdapter's operator of the same name; `crosschip.mapping.translation` reads it.

    Attributes:
        code: its `NNAdapterOperationCode`.
        operands: its input operands in order: the slot that each fills as it is, or the rule for
            it; empty if they are the operator's slots in their own order.
        given: the rules for what no input operand tells.
        optional_outputs: how many of its last output operands may be there without being made.
    """

    code: int
    operands: tuple[str | Rule, ...] = ()
    other_rules: tuple[Rule, ...] = ()
    optional_outputs: int = 0


@dataclass(frozen=True, slots=True)
class NNRt:
    """An operator of OpenHarmony's Neural Network Runtime that is this one, or a case of it.

    Attributes:
        code: its `OH_NN_OperationType`.
        name: what follows `OH_NN_OPS_` there.
        inputs: its input tensors in order: the slot that each fills as it is, or the rule for it.
        parameters: the same for each parameter tensor, by what follows `OH_NN_<name>_`; where one
            reads what another has filled, it comes after that.
        given: the rules for what neither tells.
        outputs: how many output tensors it has; `None` if one or more.
    """

    code: int
    name: str
    inputs: tuple[str | Rule, ...] = ("input",)
    parameters: Mapping[str, str | Rule] = field(default_factory=dict)
    other_rules: tuple[Rule, ...] = ()
    outputs: int | None = 1

    @property
    def operands(self) -> tuple[str | Rule, ...]:
        """The inputs, then the parameters."""
        return (*self.inputs, *self.parameters.values())


@dataclass(frozen=True, slots=True)
class HDI:
    """A node of NNRt's driver interface that is this operator, or a case of it.

    Attributes:
        code: its `NodeType`.
        name: what follows `NODE_TYPE_` there.
        inputs: its input tensors in order: the slot that each fills as it is, or the rule for it.
        attributes: the same for each field of its attributes; where one reads what another has
            filled, it comes after that. Those that are not here mean nothing to the operator.
        given: the rules for what neither tells.
        since: the version of the interface that has it, as `(major, minor)`.
    """

    code: int
    name: str
    inputs: tuple[str | Rule, ...] = ("input",)
    attributes: Mapping[str, str | Rule] = field(default_factory=dict)
    other_rules: tuple[Rule, ...] = ()
    since: tuple[int, int] = (1, 0)

    @property
    def operands(self) -> tuple[str | Rule, ...]:
        """The inputs, then the attributes."""
        return (*self.inputs, *self.attributes.values())


@dataclass(frozen=True, slots=True)
class OpsetMapping:
    """All that other systems call an operator.

    Attributes:
        nnadapter: its NNAdapter operator, if there is one.
        nnrt: its NNRt operators.
        hdi: the nodes of NNRt's driver interface that are this one, or a case of it.
        onnx: the ONNX operators of the standard domain that are this one, or a case of it.
    """

    nnadapter: NNAdapter | None = None
    nnrt: tuple[NNRt, ...] = ()
    hdi: tuple[HDI, ...] = ()
    onnx: tuple[str, ...] = ()


_mappings: dict[type[Operator], OpsetMapping] = {}


def map_operator(
    operator: type[Operator],
    *,
    nnadapter: NNAdapter | None = None,
    nnrt: Sequence[NNRt] = (),
    hdi: Sequence[HDI] = (),
    onnx: Sequence[str] = (),
) -> None:
    """Register the names of an operator in other systems; see `OpsetMapping`."""
    _mappings[operator] = OpsetMapping(nnadapter, tuple(nnrt), tuple(hdi), tuple(onnx))


def opset_mapping(operator: type[Operator]) -> OpsetMapping:
    """The names of an operator in other systems; empty if none are registered."""
    import_family("crosschip.mapping.standard", operator)
    return _mappings.get(operator, OpsetMapping())
