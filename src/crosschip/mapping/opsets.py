"""Registry of the operators of other systems that correspond to each standard operator.

    map_operator(Relu, nnadapter=NNAdapter(65), nnrt=(NNRt(47, "RELU"),), onnx=("Relu",))

`crosschip.mapping.standard.FAMILY` registers the operators of `crosschip.ops.standard.FAMILY`. The
first call of `opset_mapping` for one of them imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.families import import_family

if TYPE_CHECKING:
    from crosschip.mapping.rule import Rule
    from crosschip.ops.definition.operator import Operator


@dataclass(frozen=True, slots=True)
class NNAdapter:
    """The NNAdapter operator of the same name as a standard operator.

    Attributes:
        code: the `NNAdapterOperationCode`.
        operands: for each input operand in order, the slot that takes it unchanged, or its rule;
            empty if the operands are the operator's slots in order.
        other_rules: the rules for slots without an operand.
        optional_outputs: how many of the last outputs may be declared but not computed.
    """

    code: int
    operands: tuple[str | Rule, ...] = ()
    other_rules: tuple[Rule, ...] = ()
    optional_outputs: int = 0


@dataclass(frozen=True, slots=True)
class NNRt:
    """An operator of OpenHarmony's Neural Network Runtime that a standard operator implements.

    Attributes:
        code: the `OH_NN_OperationType`.
        name: its name without `OH_NN_OPS_`.
        inputs: for each input tensor in order, the slot that takes it unchanged, or its rule.
        parameters: the same for each parameter tensor, by its name without `OH_NN_<name>_`; a rule
            that reads the slot of another rule comes after that.
        other_rules: the rules for slots without a tensor.
        outputs: the number of output tensors; `None` for one or more.
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
    """A node of NNRt's driver interface (HDI) that a standard operator implements.

    Attributes:
        code: the `NodeType`.
        name: its name without `NODE_TYPE_`.
        inputs: for each input tensor in order, the slot that takes it unchanged, or its rule.
        attributes: the same for each attribute, by name; a rule that reads the slot of another rule
            comes after that. Attributes that are not listed have no effect.
        other_rules: the rules for slots without a tensor or attribute.
        since: the first version of the interface with this node, as `(major, minor)`.
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
    """The operators of all other systems that a standard operator implements.

    Attributes:
        nnadapter: the NNAdapter operator, if there is one.
        nnrt: the NNRt operators.
        hdi: the nodes of NNRt's driver interface.
        onnx: the ONNX operators; those of other domains have a prefix such as `com.microsoft.`.
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
    """Register the operators of other systems for a standard operator; see `OpsetMapping`."""
    _mappings[operator] = OpsetMapping(nnadapter, tuple(nnrt), tuple(hdi), tuple(onnx))


def opset_mapping(operator: type[Operator]) -> OpsetMapping:
    """Return the operators of other systems for a standard operator; empty if none."""
    import_family("crosschip.mapping.standard", operator)
    return _mappings.get(operator, OpsetMapping())
