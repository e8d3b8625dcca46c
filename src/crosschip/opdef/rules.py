"""The rules of OpDef documents that a schema cannot express."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crosschip.ir.suggestion import did_you_mean
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.defaults import (
    Value,
    parse_default,
    parse_repeated,
    reason_against,
    scalars,
    shape_of,
)
from crosschip.opdef.definitions import (
    Constraint,
    Enumeration,
    Layout,
    Node,
    OpDef,
    OpDefCollection,
    Output,
    Parameter,
    Rank,
    SupplementalOpDef,
    SupplementalOpDefList,
    SupplementalTensor,
    Tensor,
)
from crosschip.opdef.problems import Place, Problem

_NOWHERE = Place(0, 0)
_LONGEST = 40
_FEW = 500

ROLES = ("inputs", "outputs", "parameters")
"""The fields of an operator that hold its tensors."""


def rule_problems(collection: OpDefCollection) -> Iterator[Problem]:
    """The rules that a collection of the right form breaks."""
    yield from _twice(collection.definitions.op_defs, "OpDefList: there are two operators")
    accounts = _backend_accounts(collection)
    for op_def in collection.definitions.op_defs:
        yield from _op_def(op_def)
        yield from _left_to_backends(op_def, accounts.get(op_def.name, _BackendAccount()))
    yield from _twice(
        collection.supplements, "OpDefCollection: there are two lists of the backend", "backend"
    )
    known = collection.op_defs
    for supplement in collection.supplements:
        yield from _supplements(known, supplement)


def _at(node: Node, message: str, is_tolerated: bool = False) -> Problem:
    return Problem(node.place or _NOWHERE, message, is_tolerated)


def _twice(nodes: Iterable[Node], message: str, field: str = "name") -> Iterator[Problem]:
    """Nodes whose name another one before them has."""
    seen: dict[str, Node] = {}
    for node in nodes:
        name = getattr(node, field)
        first = seen.setdefault(name, node)
        if first is not node:
            where = f"; the first is at line {first.place.line}" if first.place else ""
            yield _at(node, f"{message} {name!r}{where}")


def _repeated(node: Node, what: str, words: Sequence[object]) -> Iterator[Problem]:
    """Words that stand in a list more than once."""
    for word, count in Counter(words).items():
        if count > 1:
            yield _at(node, f"{what} {getattr(word, 'value', word)!s} twice")


def _did_you_mean(name: str, known: Collection[str]) -> str:
    """The names that may be meant, where there are not too many to look through."""
    return did_you_mean(name, known) if len(known) <= _FEW else ""


def _op_def(op_def: OpDef) -> Iterator[Problem]:
    where = f"{op_def.name}: "
    yield from _repeated(op_def, f"{where}names the backend", op_def.backends)
    for role in ROLES:
        tensors: Sequence[Tensor] = getattr(op_def, role)
        yield from _twice(tensors, f"{where}there are two {role}")
        for tensor in tensors:
            yield from _tensor(f"{op_def.name}.{tensor.name}: ", tensor)


def _tensor(where: str, tensor: Tensor) -> Iterator[Problem]:
    if tensor.shape.rank is Rank.SCALAR and not isinstance(tensor, Parameter):
        role = "an output" if isinstance(tensor, Output) else "an input"
        yield _at(tensor.shape, f"{where}{role} has at least one axis, so its rank is not SCALAR")
    yield from _repeated(tensor, f"{where}names the datatype", tensor.datatypes)
    if Datatype.BACKEND_SPECIFIC in tensor.datatypes and len(set(tensor.datatypes)) > 1:
        yield _at(
            tensor, f"{where}names datatypes besides BACKEND_SPECIFIC, which leaves them open"
        )
    yield from _constraints(where, tensor.constraints)
    enumeration = tensor.enumeration if isinstance(tensor, Parameter) else None
    if enumeration is not None:
        yield from _enumeration(where, enumeration, tensor)
    default = getattr(tensor, "default", None)
    if default is not None:
        yield from _default(where, tensor, default, enumeration)


def _constraints(where: str, constraints: Sequence[Constraint]) -> Iterator[Problem]:
    yield from _twice(constraints, f"{where}there are two constraints of the id", "id")


def _enumeration(where: str, enumeration: Enumeration, tensor: Tensor) -> Iterator[Problem]:
    yield from _repeated(enumeration, f"{where}its enumeration has", enumeration.names)
    for datatype in tensor.datatypes:
        if not datatype.integer and datatype is not Datatype.BACKEND_SPECIFIC:
            yield _at(
                enumeration,
                f"{where}names of an enumeration stand for integers, not for {datatype.value}",
            )


def _default(
    where: str, tensor: Tensor, text: str, enumeration: Enumeration | None
) -> Iterator[Problem]:
    where = f"{where}its default "
    value, brief = parse_default(text), text.strip()[:_LONGEST]
    if enumeration is not None:
        names = enumeration.names
        if value not in names and value not in range(len(names)):
            near = _did_you_mean(brief, names)
            yield _at(
                tensor,
                f"{where}{brief!r} is no name of its enumeration, and no number below "
                f"{len(names)}{near}",
            )
        return
    rank = tensor.shape.rank
    repeated = parse_repeated(text)
    if repeated is not None and rank is not Rank.SCALAR:
        message = f"{where}{brief} leaves open how many values it has; write all of them"
        yield _at(tensor, message, is_tolerated=True)
        value = (repeated,)
    try:
        shape = shape_of(value)
    except ValueError as error:
        yield _at(tensor, f"{where}{brief} is no tensor: {error}")
        return
    if repeated is None and shape and rank.axes not in (None, len(shape)):
        message = f"{where}has {len(shape)} axes, but its rank is {rank.value}"
        yield _at(tensor, message, is_tolerated=len(shape) == 1 and rank is not Rank.SCALAR)
    concrete = [d for d in tensor.datatypes if d is not Datatype.BACKEND_SPECIFIC]
    reasons = [_reason_against(value, datatype) for datatype in concrete]
    if reasons and all(reasons):
        yield _at(tensor, f"{where}does not fit: {reasons[0]}")


def _reason_against(value: Value, datatype: Datatype) -> str:
    reasons = (reason_against(scalar, datatype) for scalar in scalars(value))
    return next(filter(None, reasons), "")


@dataclass
class _BackendAccount:
    """The backends' account of an operator.

    Attributes:
        backends: those that list it among what they support.
        reported: what they report of which tensor: backend, role, name, and `datatype` or `layout`.
    """

    backends: dict[str, None] = field(default_factory=dict)
    reported: set[tuple[str, str, str, str]] = field(default_factory=set)


def _backend_accounts(collection: OpDefCollection) -> Mapping[str, _BackendAccount]:
    """The backends' account of each operator that they name."""
    accounts: defaultdict[str, _BackendAccount] = defaultdict(_BackendAccount)
    for supplement in collection.supplements:
        backend = supplement.backend
        for name in supplement.supported.names if supplement.supported else ():
            accounts[name].backends[backend] = None
        for op_def in supplement.op_defs:
            accounts[op_def.name].reported.update(
                (backend, role, tensor.name, what)
                for role in ROLES
                for tensor in getattr(op_def, role)
                for what in _tells(tensor)
            )
    return accounts


def _left_to_backends(op_def: OpDef, account: _BackendAccount) -> Iterator[Problem]:
    """Fields that are BACKEND_SPECIFIC, and of which a backend of the operator says nothing."""
    backends = dict.fromkeys((*op_def.backends, *account.backends))
    for role in ROLES:
        for tensor in getattr(op_def, role):
            for what in _open_questions(tensor):
                silent = [
                    b for b in backends if (b, role, tensor.name, what) not in account.reported
                ]
                if not backends and not any(
                    t[1:] == (role, tensor.name, what) for t in account.reported
                ):
                    silent = ["any backend"]
                if silent:
                    yield _at(
                        tensor,
                        f"{op_def.name}.{tensor.name}: its {what} is BACKEND_SPECIFIC, but no "
                        f"SupplementalOpDef for {', '.join(silent)} says it",
                    )


def _open_questions(tensor: Tensor) -> Iterator[str]:
    if Datatype.BACKEND_SPECIFIC in tensor.datatypes:
        yield "datatype"
    if tensor.shape.layout is Layout.BACKEND_SPECIFIC:
        yield "layout"


def _tells(tensor: SupplementalTensor) -> Iterator[str]:
    if tensor.datatypes:
        yield "datatype"
    if tensor.shape and tensor.shape.layout not in (None, Layout.BACKEND_SPECIFIC):
        yield "layout"


def _supplements(
    known: Mapping[str, OpDef], supplement: SupplementalOpDefList
) -> Iterator[Problem]:
    backend = f"{supplement.backend}: "
    if supplement.supported is not None:
        names = supplement.supported.names
        yield from _repeated(supplement.supported, f"{backend}supports", names)
        for name in names:
            if name not in known:
                yield _at(
                    supplement.supported,
                    f"{backend}supports {name!r}, but there is no such operator"
                    f"{_did_you_mean(name, known)}",
                )
    yield from _twice(supplement.op_defs, f"{backend}there are two supplements to")
    for supplemental in supplement.op_defs:
        op_def = known.get(supplemental.name)
        if op_def is None:
            yield _at(
                supplemental,
                f"{backend}supplements {supplemental.name!r}, but there is no such operator"
                f"{_did_you_mean(supplemental.name, known)}",
            )
        else:
            yield from _supplement(f"{backend}{op_def.name}", op_def, supplemental)


def _supplement(where: str, op_def: OpDef, supplemental: SupplementalOpDef) -> Iterator[Problem]:
    for role in ROLES:
        tensors: Sequence[SupplementalTensor] = getattr(supplemental, role)
        known: dict[str, Tensor] = {tensor.name: tensor for tensor in getattr(op_def, role)}
        yield from _twice(tensors, f"{where}: there are two {role}")
        for tensor in tensors:
            if tensor.name in known:
                yield from _supplemental(f"{where}.{tensor.name}: ", known[tensor.name], tensor)
            else:
                yield _at(
                    tensor,
                    f"{where}: supplements {tensor.name!r}, which is not among the {role} of the "
                    f"operator{_did_you_mean(tensor.name, known)}",
                )


def _supplemental(where: str, tensor: Tensor, tells: SupplementalTensor) -> Iterator[Problem]:
    yield from _repeated(tells, f"{where}names the datatype", tells.datatypes)
    yield from _constraints(where, tells.constraints)
    if tells.only_default and tensor.mandatory and getattr(tensor, "default", None) is None:
        yield _at(tells, f"{where}only its default is supported, but it has none, and is mandatory")
