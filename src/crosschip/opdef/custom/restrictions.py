"""A backend's account of an operator as what a device may run of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosschip.opdef.constraints import Condition, GrammarError, parse_rule, tensors_of
from crosschip.opdef.custom.slots import DefinedSlot, default_array, stored_of, words
from crosschip.opdef.definitions import (
    Constraint,
    OpDef,
    OpDefCollection,
    SupplementalOpDef,
    SupplementalTensor,
)
from crosschip.opdef.evaluation import Operands, holds
from crosschip.ops.definition.custom import PackagedOperator

_DEVICES = {"htp": "qualcomm"}
"""The device for a backend that Qualcomm's documents call otherwise."""


@dataclass(frozen=True)
class Restrictions:
    """A backend's account of an operator.

    Attributes:
        backend: its name in the document.
        supported: whether the backend has the operator at all.
        tensors: what it says of tensors.
    """

    backend: str
    supported: bool
    tensors: Sequence[SupplementalTensor]

    def broken(self, operation: PackagedOperator, operands: Operands) -> tuple[str, str] | None:
        """Return the slot, and the sentence that an operation breaks; `None` if it breaks none.

        Args:
            operation: the operation.
            operands: what fills its inputs and parameters, by tensor.
        """
        if not self.supported:
            return "", f"is not among what the package says that {self.backend} supports"
        outputs = dict(zip(operation.results, ([o] for o in operation.outputs), strict=False))
        all_operands = {**outputs, **operands}
        for tensor in self.tensors:
            reason = self._broken(tensor, operation, all_operands)
            if reason:
                slot = operation.tensors.get(tensor.name, "output")
                return slot, f"{reason} (the package's supplement for {self.backend})"
        return None

    def _broken(
        self, tensor: SupplementalTensor, operation: PackagedOperator, operands: Operands
    ) -> str:
        stored = {(d.element_type, d.quantized) for d in tensor.datatypes}
        filled = operands.get(tensor.name, ())
        for operand in filled:
            if stored and stored_of(operand) not in stored:
                supported = words([(t, q) for t, q in stored if t is not None])
                return f"is {words([stored_of(operand)])}, but only {supported} is supported"
        slot = operation.tensors.get(tensor.name)
        if tensor.only_default and slot and not _is_default(operation, slot):
            return "only its default is supported"
        for constraint, rule in _enforced(tensor.constraints, operands):
            if holds(rule, operands) is False:
                return f"breaks the constraint {constraint.text.strip()!r}"
        return ""


def restrictions_of(collection: OpDefCollection, op_def: OpDef) -> dict[str, Restrictions]:
    """Return what the backends that a document speaks of say about an operator, by name in lower case.

    A backend that lists what it supports supports nothing else. One that the operator's own list
    leaves out, and that supplements nothing of it, is not spoken of.
    """
    listed = collection.backends_of(op_def)
    by_backend = {}
    for supplement in collection.supplements:
        own = next((s for s in supplement.op_defs if s.name == op_def.name), None)
        supported = supplement.supported is None or supplement.backend in listed or own is not None
        by_backend[supplement.backend.lower()] = Restrictions(
            supplement.backend, supported, () if own is None else _tensors(own)
        )
    return {device_of(backend): restrictions for backend, restrictions in by_backend.items()}


def device_of(backend: str) -> str:
    """Return the name that the device for a backend has, in lower case; there may be no such device."""
    return _DEVICES.get(backend.lower(), backend.lower())


def _is_default(operation: PackagedOperator, slot: str) -> bool:
    """Return whether an input or a parameter is left out, or says what leaving it out says."""
    operand, declared = operation.operand(slot), getattr(type(operation), slot)
    if operand is None or not isinstance(declared, DefinedSlot):
        return operand is None
    default = default_array(declared.tensor, declared.stored)
    value = operand.value
    return default is not None and value is not None and np.array_equal(value, default)


def _tensors(supplement: SupplementalOpDef) -> Sequence[SupplementalTensor]:
    return (*supplement.inputs, *supplement.outputs, *supplement.parameters)


def _enforced(
    constraints: Sequence[Constraint], known: Mapping[str, object]
) -> Sequence[tuple[Constraint, Condition]]:
    """Return the constraints that are machine-readable."""
    enforced = []
    for constraint in constraints:
        try:
            rule = parse_rule(constraint.text)
        except GrammarError:
            continue
        if known.keys() >= set(tensors_of(rule)):
            enforced.append((constraint, rule))
    return enforced
