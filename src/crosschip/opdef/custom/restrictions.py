"""Backends' declarations about an operator as restrictions of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosschip.opdef.constraints import Condition, GrammarError, parse_rule, tensors_of
from crosschip.opdef.custom.slots import DefinedSlot, default_array, describe_types, stored_of
from crosschip.opdef.definitions import (
    Constraint,
    OpDef,
    OpDefCollection,
    SupplementalTensor,
)
from crosschip.opdef.evaluation import Operands, holds
from crosschip.ops.definition.custom import PackagedOperator

_DEVICES = {"htp": "qualcomm"}
"""Devices whose name differs from the backend's in Qualcomm's documents."""


@dataclass(frozen=True)
class Restrictions:
    """Declarations of a backend about an operator.

    Attributes:
        backend: the name of the backend in the document.
        supported: whether the backend supports the operator.
        tensors: the declarations about tensors.
    """

    backend: str
    supported: bool
    tensors: Sequence[SupplementalTensor]

    def violation(self, operation: PackagedOperator, operands: Operands) -> tuple[str, str] | None:
        """Return the first violated restriction as slot and reason; `None` if there is none.

        Args:
            operation: the operation.
            operands: the operands of inputs and parameters, by tensor.
        """
        if not self.supported:
            return "", f"is not among what the package says that {self.backend} supports"
        outputs = dict(zip(operation.results, ([o] for o in operation.outputs), strict=False))
        all_operands = {**outputs, **operands}
        for tensor in self.tensors:
            reason = self._tensor_violation(tensor, operation, all_operands)
            if reason:
                slot = operation.tensors.get(tensor.name, "output")
                return slot, f"{reason} (the package's supplement for {self.backend})"
        return None

    def _tensor_violation(
        self, tensor: SupplementalTensor, operation: PackagedOperator, operands: Operands
    ) -> str:
        stored = {(d.element_type, d.quantized) for d in tensor.datatypes}
        tensor_operands = operands.get(tensor.name, ())
        for operand in tensor_operands:
            if stored and stored_of(operand) not in stored:
                supported = describe_types([(t, q) for t, q in stored if t is not None])
                return (
                    f"is {describe_types([stored_of(operand)])}, but only {supported} is supported"
                )
        slot = operation.tensors.get(tensor.name)
        if tensor.only_default and slot and not _is_default(operation, slot):
            return "only its default is supported"
        for constraint, rule in _machine_readable(tensor.constraints, operands):
            if holds(rule, operands) is False:
                return f"breaks the constraint {constraint.text.strip()!r}"
        return ""


def restrictions_of(collection: OpDefCollection, op_def: OpDef) -> dict[str, Restrictions]:
    """Return the backends' restrictions for an operator, by device name in lower case.

    A backend with a list of supported operators supports no others. A backend without a supplement
    has no restrictions.
    """
    supporting = collection.backends_of(op_def)
    restrictions = {}
    for supplement in collection.supplements:
        backend = supplement.backend
        supplemental = next((s for s in supplement.op_defs if s.name == op_def.name), None)
        supported = supplement.supported is None or backend in supporting
        tensors = () if supplemental is None else tuple(supplemental.tensors)
        restrictions[device_of(backend)] = Restrictions(
            backend, supported or supplemental is not None, tensors
        )
    return restrictions


def device_of(backend: str) -> str:
    """Return the device name for a backend, in lower case; the device may not exist."""
    return _DEVICES.get(backend.lower(), backend.lower())


def _is_default(operation: PackagedOperator, slot: str) -> bool:
    """Return whether an operand is omitted or equal to its default."""
    operand, declared = operation.operand(slot), getattr(type(operation), slot)
    if operand is None or not isinstance(declared, DefinedSlot):
        return operand is None
    default = default_array(declared.tensor, declared.stored)
    value = operand.value
    return default is not None and value is not None and np.array_equal(value, default)


def _machine_readable(
    constraints: Sequence[Constraint], tensors: Mapping[str, object]
) -> Sequence[tuple[Constraint, Condition]]:
    """Return the machine-readable constraints."""
    enforced = []
    for constraint in constraints:
        try:
            rule = parse_rule(constraint.text)
        except GrammarError:
            continue
        if tensors.keys() >= set(tensors_of(rule)):
            enforced.append((constraint, rule))
    return enforced
