"""Rules of OpDef documents that a schema cannot express."""

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
from crosschip.opdef.problems import Location, Problem

_NOWHERE = Location(0, 0)
_LONGEST = 40
_FEW = 500

ROLES = ("inputs", "outputs", "parameters")
"""The fields of an operator that hold its tensors."""


def rule_problems(collection: OpDefCollection) -> Iterator[Problem]:
    """Yield the violations of rules in a schema-valid collection."""
    yield from _duplicates(collection.definitions.op_defs, "OpDefList: there are two operators")
    declarations = _declarations_of(collection)
    for op_def in collection.definitions.op_defs:
        yield from _op_def_problems(op_def)
        yield from _unspecified_problems(op_def, declarations.get(op_def.name, _Declarations()))
    yield from _duplicates(
        collection.supplements, "OpDefCollection: there are two lists of the backend", "backend"
    )
    op_defs = collection.op_defs
    for supplement in collection.supplements:
        yield from _supplement_list_problems(op_defs, supplement)


def _problem(node: Node, message: str, is_tolerated: bool = False) -> Problem:
    return Problem(node.location or _NOWHERE, message, is_tolerated)


def _duplicates(nodes: Iterable[Node], message: str, field: str = "name") -> Iterator[Problem]:
    """Yield a problem for each node with the name of an earlier one."""
    first_nodes: dict[str, Node] = {}
    for node in nodes:
        name = getattr(node, field)
        first = first_nodes.setdefault(name, node)
        if first is not node:
            where = f"; the first is at line {first.location.line}" if first.location else ""
            yield _problem(node, f"{message} {name!r}{where}")


def _repetitions(node: Node, what: str, words: Sequence[object]) -> Iterator[Problem]:
    """Yield a problem for each word that occurs more than once."""
    for word, count in Counter(words).items():
        if count > 1:
            yield _problem(node, f"{what} {getattr(word, 'value', word)!s} twice")


def _did_you_mean(name: str, known: Collection[str]) -> str:
    """Suggest similar names, unless there are too many to search."""
    return did_you_mean(name, known) if len(known) <= _FEW else ""


def _op_def_problems(op_def: OpDef) -> Iterator[Problem]:
    where = f"{op_def.name}: "
    yield from _repetitions(op_def, f"{where}names the backend", op_def.backends)
    for role in ROLES:
        tensors: Sequence[Tensor] = getattr(op_def, role)
        yield from _duplicates(tensors, f"{where}there are two {role}")
        for tensor in tensors:
            yield from _tensor_problems(f"{op_def.name}.{tensor.name}: ", tensor)


def _tensor_problems(where: str, tensor: Tensor) -> Iterator[Problem]:
    if tensor.shape.rank is Rank.SCALAR and not isinstance(tensor, Parameter):
        role = "an output" if isinstance(tensor, Output) else "an input"
        yield _problem(
            tensor.shape, f"{where}{role} has at least one axis, so its rank is not SCALAR"
        )
    yield from _repetitions(tensor, f"{where}names the datatype", tensor.datatypes)
    if Datatype.BACKEND_SPECIFIC in tensor.datatypes and len(set(tensor.datatypes)) > 1:
        yield _problem(
            tensor, f"{where}names datatypes besides BACKEND_SPECIFIC, which leaves them open"
        )
    yield from _constraint_problems(where, tensor.constraints)
    enumeration = tensor.enumeration if isinstance(tensor, Parameter) else None
    if enumeration is not None:
        yield from _enumeration_problems(where, enumeration, tensor)
    default = getattr(tensor, "default", None)
    if default is not None:
        yield from _default_problems(where, tensor, default, enumeration)


def _constraint_problems(where: str, constraints: Sequence[Constraint]) -> Iterator[Problem]:
    yield from _duplicates(constraints, f"{where}there are two constraints of the id", "id")


def _enumeration_problems(
    where: str, enumeration: Enumeration, tensor: Tensor
) -> Iterator[Problem]:
    yield from _repetitions(enumeration, f"{where}its enumeration has", enumeration.names)
    for datatype in tensor.datatypes:
        if not datatype.integer and datatype is not Datatype.BACKEND_SPECIFIC:
            yield _problem(
                enumeration,
                f"{where}names of an enumeration stand for integers, not for {datatype.value}",
            )


def _default_problems(
    where: str, tensor: Tensor, text: str, enumeration: Enumeration | None
) -> Iterator[Problem]:
    where = f"{where}its default "
    value, brief = parse_default(text), text.strip()[:_LONGEST]
    if enumeration is not None:
        names = enumeration.names
        if value not in names and value not in range(len(names)):
            near = _did_you_mean(brief, names)
            yield _problem(
                tensor,
                f"{where}{brief!r} is no name of its enumeration, and no number below "
                f"{len(names)}{near}",
            )
        return
    rank = tensor.shape.rank
    repeated = parse_repeated(text)
    if repeated is not None and rank is not Rank.SCALAR:
        message = f"{where}{brief} leaves open how many values it has; write all of them"
        yield _problem(tensor, message, is_tolerated=True)
        value = (repeated,)
    try:
        shape = shape_of(value)
    except ValueError as error:
        yield _problem(tensor, f"{where}{brief} is no tensor: {error}")
        return
    if repeated is None and shape and rank.axes not in (None, len(shape)):
        message = f"{where}has {len(shape)} axes, but its rank is {rank.value}"
        yield _problem(tensor, message, is_tolerated=len(shape) == 1 and rank is not Rank.SCALAR)
    concrete = [d for d in tensor.datatypes if d is not Datatype.BACKEND_SPECIFIC]
    reasons = [_reason_against(value, datatype) for datatype in concrete]
    if reasons and all(reasons):
        yield _problem(tensor, f"{where}does not fit: {reasons[0]}")


def _reason_against(value: Value, datatype: Datatype) -> str:
    reasons = (reason_against(scalar, datatype) for scalar in scalars(value))
    return next(filter(None, reasons), "")


@dataclass
class _Declarations:
    """Backends' declarations about an operator.

    Attributes:
        backends: the backends that list the operator as supported.
        reported: the declarations: backend, role, tensor name, and `datatype` or `layout`.
    """

    backends: dict[str, None] = field(default_factory=dict)
    reported: set[tuple[str, str, str, str]] = field(default_factory=set)


def _declarations_of(collection: OpDefCollection) -> Mapping[str, _Declarations]:
    """Return the backends' declarations by operator."""
    declarations: defaultdict[str, _Declarations] = defaultdict(_Declarations)
    for supplement in collection.supplements:
        backend = supplement.backend
        for name in supplement.supported.names if supplement.supported else ():
            declarations[name].backends[backend] = None
        for op_def in supplement.op_defs:
            declarations[op_def.name].reported.update(
                (backend, role, tensor.name, what)
                for role in ROLES
                for tensor in getattr(op_def, role)
                for what in _fixed_fields(tensor)
            )
    return declarations


def _unspecified_problems(op_def: OpDef, declarations: _Declarations) -> Iterator[Problem]:
    """Yield a problem for each BACKEND_SPECIFIC field that a supplement does not specify."""
    backends = dict.fromkeys((*op_def.backends, *declarations.backends))
    for role in ROLES:
        for tensor in getattr(op_def, role):
            for what in _open_fields(tensor):
                missing = [
                    b for b in backends if (b, role, tensor.name, what) not in declarations.reported
                ]
                if not backends and not any(
                    t[1:] == (role, tensor.name, what) for t in declarations.reported
                ):
                    missing = ["any backend"]
                if missing:
                    yield _problem(
                        tensor,
                        f"{op_def.name}.{tensor.name}: its {what} is BACKEND_SPECIFIC, but no "
                        f"SupplementalOpDef for {', '.join(missing)} says it",
                    )


def _open_fields(tensor: Tensor) -> Iterator[str]:
    if Datatype.BACKEND_SPECIFIC in tensor.datatypes:
        yield "datatype"
    if tensor.shape.layout is Layout.BACKEND_SPECIFIC:
        yield "layout"


def _fixed_fields(tensor: SupplementalTensor) -> Iterator[str]:
    if tensor.datatypes:
        yield "datatype"
    if tensor.shape and tensor.shape.layout not in (None, Layout.BACKEND_SPECIFIC):
        yield "layout"


def _supplement_list_problems(
    op_defs: Mapping[str, OpDef], supplement: SupplementalOpDefList
) -> Iterator[Problem]:
    backend = f"{supplement.backend}: "
    if supplement.supported is not None:
        names = supplement.supported.names
        yield from _repetitions(supplement.supported, f"{backend}supports", names)
        for name in names:
            if name not in op_defs:
                yield _problem(
                    supplement.supported,
                    f"{backend}supports {name!r}, but there is no such operator"
                    f"{_did_you_mean(name, op_defs)}",
                )
    yield from _duplicates(supplement.op_defs, f"{backend}there are two supplements to")
    for supplemental in supplement.op_defs:
        op_def = op_defs.get(supplemental.name)
        if op_def is None:
            yield _problem(
                supplemental,
                f"{backend}supplements {supplemental.name!r}, but there is no such operator"
                f"{_did_you_mean(supplemental.name, op_defs)}",
            )
        else:
            yield from _supplement_problems(f"{backend}{op_def.name}", op_def, supplemental)


def _supplement_problems(
    where: str, op_def: OpDef, supplemental: SupplementalOpDef
) -> Iterator[Problem]:
    for role in ROLES:
        tensors: Sequence[SupplementalTensor] = getattr(supplemental, role)
        tensors_by_name: dict[str, Tensor] = {
            tensor.name: tensor for tensor in getattr(op_def, role)
        }
        yield from _duplicates(tensors, f"{where}: there are two {role}")
        for tensor in tensors:
            if tensor.name in tensors_by_name:
                yield from _supplemental_tensor_problems(
                    f"{where}.{tensor.name}: ", tensors_by_name[tensor.name], tensor
                )
            else:
                yield _problem(
                    tensor,
                    f"{where}: supplements {tensor.name!r}, which is not among the {role} of the "
                    f"operator{_did_you_mean(tensor.name, tensors_by_name)}",
                )


def _supplemental_tensor_problems(
    where: str, tensor: Tensor, supplemental: SupplementalTensor
) -> Iterator[Problem]:
    yield from _repetitions(supplemental, f"{where}names the datatype", supplemental.datatypes)
    yield from _constraint_problems(where, supplemental.constraints)
    if supplemental.only_default and tensor.mandatory and getattr(tensor, "default", None) is None:
        yield _problem(
            supplemental, f"{where}only its default is supported, but it has none, and is mandatory"
        )
