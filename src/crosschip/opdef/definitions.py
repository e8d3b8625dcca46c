"""OpDef documents as data: a class for each type of their schema.

A field says where in the document it stands; reading, writing, comparing and JSON follow from it.
The order of the fields is the order of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.problems import Place


class Rank(Enum):
    """The number of axes of a tensor; `ND` is any."""

    SCALAR = "SCALAR"
    ONE = "1D"
    TWO = "2D"
    THREE = "3D"
    FOUR = "4D"
    ANY = "ND"

    @property
    def axes(self) -> int | None:
        """The number; `None` if it is any."""
        return None if self is Rank.ANY else list(Rank).index(self)


class Layout(Enum):
    """The order of a tensor's axes."""

    NHWC = "NHWC"
    NHCW = "NHCW"
    UNDEFINED = "UNDEFINED"
    BACKEND_SPECIFIC = "BACKEND_SPECIFIC"
    NONTRIVIAL = "NONTRIVIAL"


class ConstraintType(Enum):
    """The sort of rule that a constraint is."""

    NUMBER = "Number"
    """The number of tensors."""
    SHAPE = "Shape"
    VALUE = "Value"
    DATATYPE = "Datatype"
    DESCRIPTION = "Description"
    """None of the others."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Marks a field that child elements of a tag hold; `exact` if the space in a text counts."""

    name: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """Marks a field that an attribute holds."""

    name: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Marks a field that is the element's own text."""


@dataclass(frozen=True, slots=True)
class Xml:
    """The place in a document of a field of a `Node`, and its kind there.

    Attributes:
        kinds: `str`, `int`, `bool`, an enumeration or a class of `Node`, by tag; the tag is empty
            for an attribute, and for the node's own text.
        attribute: the attribute that holds it.
        exact: whether the space in a text counts.
        many: whether the field is a tuple.
        default: what it is where the document leaves it out; `MISSING` if it must not.
    """

    kinds: Mapping[str, type[Any]]
    attribute: str
    exact: bool
    many: bool
    default: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a document.

    Attributes:
        place: where it was read; `None` if it was not. It makes no difference to equality.
    """

    place: Place | None = field(default=None, compare=False, repr=False)


_layouts: dict[type[Any], Mapping[str, Xml]] = {}


def layout_of(cls: type[Node]) -> Mapping[str, Xml]:
    """The places in a document of the fields of a class of nodes, by name, in order."""
    if cls not in _layouts:
        hints = get_type_hints(cls, include_extras=True)
        marked = [f for f in fields(cls) if get_origin(hints[f.name]) is Annotated]
        _layouts[cls] = {f.name: _xml(hints[f.name], f.default) for f in marked}
    return _layouts[cls]


def _xml(annotation: Any, default: object) -> Xml:
    """The place of a field of a type: `X`, `X | None`, `tuple[X, ...]` or `tuple[X | Y, ...]`."""
    hint, mark = get_args(annotation)
    many = get_origin(hint) is tuple
    hint = get_args(hint)[0] if many else hint
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    exact = isinstance(mark, Text) or mark.exact
    if isinstance(mark, Tag):
        tags = [mark.name] if mark.name else [kind.__name__ for kind in kinds]
        return Xml(dict(zip(tags, kinds, strict=True)), "", exact, many, default)
    name = mark.name if isinstance(mark, Attribute) else ""
    return Xml({"": kinds[0]}, name, exact, many, default)


def values(node: Node, name: str) -> tuple[Any, ...]:
    """The values of a field that a document spells out, as a tuple; what is left out is not."""
    value, xml = getattr(node, name), layout_of(type(node))[name]
    if xml.many:
        return cast(tuple[Any, ...], value)
    return () if xml.default is not MISSING and value == xml.default else (value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content(Node):
    """A paragraph of a description."""

    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Node):
    """A line of code in a description."""

    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Node):
    """Paragraphs and lines of code, in sequence."""

    parts: Annotated[tuple[Content | Code, ...], Tag()] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Node):
    """A source of an operator.

    Attributes:
        source: the framework or standard.
        url: its page about the operator.
    """

    source: Annotated[str, Attribute("Source", exact=True)] = ""
    url: Annotated[str, Attribute("Url", exact=True)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(Node):
    """A rule about a tensor.

    Attributes:
        id: its number; a supplement replaces the rule of the same number.
        type: the sort of rule.
        text: the rule, in words or in the grammar that is enforced.
    """

    id: Annotated[int, Attribute("id")]
    type: Annotated[ConstraintType, Attribute("Type")]
    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Node):
    """The shape of a tensor.

    Attributes:
        rank: the number of axes.
        layout: their order, if it matters.
        text: what else there is to say.
    """

    rank: Annotated[Rank, Tag("Rank")]
    layout: Annotated[Layout | None, Tag("Layout")] = None
    text: Annotated[str | None, Tag("Text", exact=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Node):
    """The base of inputs, outputs and parameters.

    Attributes:
        name: what it is called, as in `in[0]`.
        description: what it is.
        mandatory: whether it must be there.
        constraints: rules about it.
        datatypes: the types that it may be of.
        shape: its shape.
    """

    name: Annotated[str, Tag("Name")]
    description: Annotated[Description | None, Tag("Description")] = None
    mandatory: Annotated[bool, Tag("Mandatory")]
    constraints: Annotated[tuple[Constraint, ...], Tag("Constraint")] = ()
    datatypes: Annotated[tuple[Datatype, ...], Tag("Datatype")]
    shape: Annotated[Shape, Tag("Shape")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Tensor):
    """A tensor that an operator reads.

    Attributes:
        default: the text of its value where it is left out; `defaults.parse_default` reads it.
        repeated: whether there may be many of it.
        static: whether it is data of the model, not computed in it.
    """

    default: Annotated[str | None, Tag("Default", exact=True)] = None
    repeated: Annotated[bool, Tag("Repeated")] = False
    static: Annotated[bool, Tag("IsStaticTensor")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Tensor):
    """A tensor that an operator makes.

    Attributes:
        repeated: whether there may be many of it.
    """

    repeated: Annotated[bool, Tag("Repeated")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration(Node):
    """Names for the numbers 0, 1, 2, …."""

    names: Annotated[tuple[str, ...], Tag("Enum")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Tensor):
    """A setting of an operator.

    Attributes:
        default: the text of its value where it is left out; `defaults.parse_default` reads it.
        enumeration: names for its numbers.
    """

    default: Annotated[str | None, Tag("Default", exact=True)] = None
    enumeration: Annotated[Enumeration | None, Tag("Enumeration")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDef(Node):
    """An operator.

    Attributes:
        name: its type.
        description: what it computes.
        references: where it comes from.
        inputs: what it reads; at least one.
        outputs: what it makes; at least one.
        parameters: its settings.
        use_default_translation: whether it takes the place of the built-in operator of its name
            where a model is imported.
        backends: those that have it.
    """

    name: Annotated[str, Tag("Name")]
    description: Annotated[Description | None, Tag("Description")] = None
    references: Annotated[tuple[Reference, ...], Tag("Reference")] = ()
    inputs: Annotated[tuple[Input, ...], Tag("Input")]
    outputs: Annotated[tuple[Output, ...], Tag("Output")]
    parameters: Annotated[tuple[Parameter, ...], Tag("Parameter")] = ()
    use_default_translation: Annotated[bool, Tag("UseDefaultTranslation")] = False
    backends: Annotated[tuple[str, ...], Tag("SupportedBackend")] = ()

    @property
    def tensors(self) -> Iterator[Input | Output | Parameter]:
        """The inputs, outputs and parameters."""
        yield from self.inputs
        yield from self.outputs
        yield from self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDefList(Node):
    """The operators of a package."""

    op_defs: Annotated[tuple[OpDef, ...], Tag("OpDef")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalShape(Node):
    """A backend's account of a tensor's shape."""

    layout: Annotated[Layout | None, Tag("Layout")] = None
    text: Annotated[str | None, Tag("Text", exact=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalTensor(Node):
    """A backend's account of a tensor.

    Attributes:
        name: the tensor's.
        constraints: more rules, or others for those of the same number.
        datatypes: the types that it may be of there; empty if those of the definition.
        shape: the layout there.
        only_default: whether only the default is supported.
    """

    name: Annotated[str, Tag("Name")]
    constraints: Annotated[tuple[Constraint, ...], Tag("Constraint")] = ()
    datatypes: Annotated[tuple[Datatype, ...], Tag("Datatype")] = ()
    shape: Annotated[SupplementalShape | None, Tag("Shape")] = None
    only_default: Annotated[bool, Tag("OnlyDefaultSupported")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalOpDef(Node):
    """A backend's account of an operator.

    Attributes:
        name: the operator's.
        inputs: what it says of inputs.
        outputs: what it says of outputs.
        parameters: what it says of parameters.
    """

    name: Annotated[str, Tag("Name")]
    inputs: Annotated[tuple[SupplementalTensor, ...], Tag("Input")] = ()
    outputs: Annotated[tuple[SupplementalTensor, ...], Tag("Output")] = ()
    parameters: Annotated[tuple[SupplementalTensor, ...], Tag("Parameter")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedOps(Node):
    """The names of the operators that a backend has."""

    names: Annotated[tuple[str, ...], Tag("OpName")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalOpDefList(Node):
    """A backend's account of the operators of a package.

    Attributes:
        backend: its name.
        supported: the operators that it has.
        op_defs: what it says of single ones.
    """

    backend: Annotated[str, Attribute("Backend")]
    supported: Annotated[SupportedOps | None, Tag("SupportedOps")] = None
    op_defs: Annotated[tuple[SupplementalOpDef, ...], Tag("SupplementalOpDef")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDefCollection(Node):
    """A package of operators.

    Attributes:
        package_name: the package's; those of its libraries begin with it.
        domain: the domain of its operators in a model.
        version: the package's.
        use_qhpi: whether its kernels are written for Hexagon's plug-in interface.
        definitions: the operators.
        supplements: what backends say of them.
    """

    package_name: Annotated[str, Attribute("PackageName")]
    domain: Annotated[str, Attribute("Domain", exact=True)]
    version: Annotated[str, Attribute("Version")]
    use_qhpi: Annotated[bool, Attribute("UseQHPI")] = False
    definitions: Annotated[OpDefList, Tag("OpDefList")]
    supplements: Annotated[tuple[SupplementalOpDefList, ...], Tag("SupplementalOpDefList")] = ()

    @property
    def op_defs(self) -> Mapping[str, OpDef]:
        """The operators by name."""
        return {op_def.name: op_def for op_def in self.definitions.op_defs}

    def backends_of(self, op_def: OpDef) -> tuple[str, ...]:
        """The backends that have an operator, by its own account or by theirs."""
        theirs = (
            supplement.backend
            for supplement in self.supplements
            if supplement.supported and op_def.name in supplement.supported.names
        )
        return tuple(dict.fromkeys((*op_def.backends, *theirs)))


def plain(node: object) -> Any:
    """A node as JSON has it: fields by name, without those that are left out."""
    if isinstance(node, Node):
        return {
            name: [plain(value) for value in field_values] if xml.many else plain(field_values[0])
            for name, xml in layout_of(type(node)).items()
            if (field_values := values(node, name))
        } | ({"kind": type(node).__name__} if isinstance(node, Content | Code) else {})
    return node.value if isinstance(node, Enum) else node
