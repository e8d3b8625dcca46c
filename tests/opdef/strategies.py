"""Random collections that keep all rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.defaults import range_of
from crosschip.opdef.definitions import (
    Code,
    Constraint,
    ConstraintType,
    Content,
    Description,
    Enumeration,
    Input,
    Layout,
    OpDef,
    OpDefCollection,
    OpDefList,
    Output,
    Parameter,
    Rank,
    Reference,
    Shape,
    SupplementalOpDef,
    SupplementalOpDefList,
    SupplementalShape,
    SupplementalTensor,
    SupportedOps,
)

TEXTS = st.text(st.sampled_from("ab \t\n\r<>&'\"];é\u0085\u2028\ufffd模😀"), max_size=6)
WORDS = st.text(st.sampled_from("aZ09_[]<&'\":é模😀"), min_size=1, max_size=5)
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
DATATYPES = sorted(set(Datatype) - {Datatype.BACKEND_SPECIFIC}, key=lambda d: d.value)
LAYOUTS = sorted(set(Layout) - {Layout.BACKEND_SPECIFIC}, key=lambda layout: layout.value)


def _tuples(of: st.SearchStrategy[Any], least: int = 0, most: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


def _distinct(of: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(of, min_size=least, max_size=3, unique=True).map(tuple)


def _by(of: st.SearchStrategy[Any], key: Callable[[Any], object], least: int = 0) -> Any:
    return st.lists(of, min_size=least, max_size=2, unique_by=key).map(tuple)


def _name(node: Any) -> object:
    return node.name


DESCRIPTIONS = st.none() | st.builds(
    Description, parts=_tuples(st.builds(Content, text=TEXTS) | st.builds(Code, text=TEXTS))
)
CONSTRAINTS = _by(
    st.builds(
        Constraint,
        id=st.integers(0, 10**9 - 1),
        type=st.sampled_from(ConstraintType),
        text=TEXTS,
    ),
    lambda constraint: constraint.id,
)


def _shapes(ranks: Sequence[Rank]) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        rank=st.sampled_from(ranks),
        layout=st.none() | st.sampled_from(LAYOUTS),
        text=st.none() | TEXTS,
    )


def _tensors(cls: Any, ranks: Sequence[Rank], **more: Any) -> st.SearchStrategy[Any]:
    return st.builds(
        cls,
        name=WORDS,
        description=DESCRIPTIONS,
        mandatory=st.booleans(),
        constraints=CONSTRAINTS,
        datatypes=_distinct(st.sampled_from(DATATYPES), 1),
        shape=_shapes(ranks),
        **more,
    )


AXES = [rank for rank in Rank if rank is not Rank.SCALAR]
INPUTS = _tensors(
    Input,
    AXES,
    default=st.none() | st.just("0"),
    repeated=st.booleans(),
    static=st.booleans(),
)
OUTPUTS = _tensors(Output, AXES, repeated=st.booleans())


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    """Return a parameter; of one datatype if it has a default or names for its numbers."""
    drawn: Parameter = draw(_tensors(Parameter, list(Rank)))
    fields = {name: getattr(drawn, name) for name in ("name", "description", "constraints")}
    datatype = draw(st.sampled_from(DATATYPES))
    names = draw(st.none() | _distinct(WORDS, 1)) if datatype.integer else None
    limits = range_of(datatype)
    numbers = st.integers(limits.low, limits.high) if limits else st.floats(allow_nan=False)
    if names:
        numbers = st.integers(0, len(names) - 1)
    return Parameter(
        mandatory=drawn.mandatory,
        datatypes=(datatype,),
        shape=Shape(rank=Rank.SCALAR, text=drawn.shape.text),
        default=draw(st.none() | numbers.map(str)),
        enumeration=Enumeration(names=names) if names else None,
        **fields,
    )


OP_DEFS = st.builds(
    OpDef,
    name=IDENTIFIERS,
    description=DESCRIPTIONS,
    references=_tuples(st.builds(Reference, source=TEXTS, url=TEXTS)),
    inputs=_by(INPUTS, _name, 1),
    outputs=_by(OUTPUTS, _name, 1),
    parameters=_by(parameters(), _name),
    use_default_translation=st.booleans(),
    backends=_distinct(WORDS),
)


@st.composite
def _supplements(draw: st.DrawFn, op_defs: tuple[OpDef, ...], backend: str) -> Any:
    def told(tensors: tuple[Any, ...]) -> tuple[SupplementalTensor, ...]:
        return tuple(
            SupplementalTensor(
                name=tensor.name,
                constraints=draw(CONSTRAINTS),
                datatypes=draw(_distinct(st.sampled_from(DATATYPES))),
                shape=draw(
                    st.none()
                    | st.builds(
                        SupplementalShape,
                        layout=st.none() | st.sampled_from(LAYOUTS),
                        text=st.none() | TEXTS,
                    )
                ),
                only_default=not tensor.mandatory and draw(st.booleans()),
            )
            for tensor in tensors
            if draw(st.booleans())
        )

    names = [op_def.name for op_def in op_defs if draw(st.booleans())]
    return SupplementalOpDefList(
        backend=backend,
        supported=SupportedOps(names=tuple(names)) if draw(st.booleans()) else None,
        op_defs=tuple(
            SupplementalOpDef(
                name=op_def.name,
                inputs=told(op_def.inputs),
                outputs=told(op_def.outputs),
                parameters=told(op_def.parameters),
            )
            for op_def in op_defs
            if draw(st.booleans())
        ),
    )


@st.composite
def collections(draw: st.DrawFn) -> OpDefCollection:
    """Return a collection of one to three operators, with what up to two backends say of them."""
    op_defs = draw(_by(OP_DEFS, _name, 1))
    backends = draw(_distinct(WORDS))
    return OpDefCollection(
        package_name=draw(IDENTIFIERS),
        domain=draw(TEXTS),
        version=draw(WORDS),
        use_qhpi=draw(st.booleans()),
        definitions=OpDefList(op_defs=op_defs),
        supplements=tuple(draw(_supplements(op_defs, backend)) for backend in backends),
    )
