"""Data classes for the types of OpDef documents' schema.

Each field declares its location in the document, from which reading, writing, comparing and JSON
are derived. The order of the fields is the order of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.problems import Location


class Rank(Enum):
    """Rank of a tensor; `ND` is any."""

    SCALAR = "SCALAR"
    ONE = "1D"
    TWO = "2D"
    THREE = "3D"
    FOUR = "4D"
    ANY = "ND"

    @property
    def axes(self) -> int | None:
        """The rank as a number; `None` for any."""
        return None if self is Rank.ANY else list(Rank).index(self)


class Layout(Enum):
    """Order of a tensor's axes."""

    NHWC = "NHWC"
    NHCW = "NHCW"
    UNDEFINED = "UNDEFINED"
    BACKEND_SPECIFIC = "BACKEND_SPECIFIC"
    NONTRIVIAL = "NONTRIVIAL"


class ConstraintType(Enum):
    """Category of a constraint."""

    NUMBER = "Number"
    """The number of tensors."""
    SHAPE = "Shape"
    VALUE = "Value"
    DATATYPE = "Datatype"
    DESCRIPTION = "Description"
    """None of the others."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Annotation of a field stored in child elements; `exact` preserves white space."""

    name: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """Annotation of a field stored in an attribute."""

    name: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Annotation of a field stored as the element's text."""


@dataclass(frozen=True, slots=True)
class Xml:
    """Location of a `Node` field in a document, and its types.

    Attributes:
        kinds: `str`, `int`, `bool`, an enumeration or a class of `Node`, by tag; the tag is empty
            for an attribute and for the element's text.
        attribute: the name of the attribute; empty for elements.
        exact: whether white space is preserved.
        many: whether the field is a tuple.
        default: the value of an absent field; `MISSING` if the field is required.
    """

    kinds: Mapping[str, type[Any]]
    attribute: str
    exact: bool
    many: bool
    default: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Element of a document.

    Attributes:
        location: the location in the file; `None` if it was not read. Equality ignores it.
    """

    location: Location | None = field(default=None, compare=False, repr=False)


_layouts: dict[type[Any], Mapping[str, Xml]] = {}


def layout_of(cls: type[Node]) -> Mapping[str, Xml]:
    """Return the locations of a node class's fields, by name, in order."""
    if cls not in _layouts:
        hints = get_type_hints(cls, include_extras=True)
        marked = [f for f in fields(cls) if get_origin(hints[f.name]) is Annotated]
        _layouts[cls] = {f.name: _xml(hints[f.name], f.default) for f in marked}
    return _layouts[cls]


def _xml(annotation: Any, default: object) -> Xml:
    """Return the location for a field type `X`, `X | None`, `tuple[X, …]` or `tuple[X | Y, …]`."""
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
    """Return the values that a document writes for a field; none for a default."""
    value, xml = getattr(node, name), layout_of(type(node))[name]
    if xml.many:
        return cast(tuple[Any, ...], value)
    return () if xml.default is not MISSING and value == xml.default else (value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content(Node):
    """Paragraph of a description."""

    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Node):
    """Line of code in a description."""

    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Node):
    """Sequence of paragraphs and lines of code."""

    parts: Annotated[tuple[Content | Code, ...], Tag()] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Node):
    """Source of an operator.

    Attributes:
        source: the framework or standard.
        url: its page about the operator.
    """

    source: Annotated[str, Attribute("Source", exact=True)] = ""
    url: Annotated[str, Attribute("Url", exact=True)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(Node):
    """Rule about a tensor.

    Attributes:
        id: the number of the rule; a supplement replaces the rule of the same number.
        type: the category.
        text: the rule, in words or in the grammar of machine-readable constraints.
    """

    id: Annotated[int, Attribute("id")]
    type: Annotated[ConstraintType, Attribute("Type")]
    text: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Node):
    """Shape of a tensor.

    Attributes:
        rank: the rank.
        layout: the order of the axes, if it matters.
        text: further remarks.
    """

    rank: Annotated[Rank, Tag("Rank")]
    layout: Annotated[Layout | None, Tag("Layout")] = None
    text: Annotated[str | None, Tag("Text", exact=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Node):
    """Base of inputs, outputs and parameters.

    Attributes:
        name: the name, such as `in[0]`.
        description: the meaning.
        mandatory: whether the tensor is required.
        constraints: the rules about the tensor.
        datatypes: the permitted datatypes.
        shape: the shape.
    """

    name: Annotated[str, Tag("Name")]
    description: Annotated[Description | None, Tag("Description")] = None
    mandatory: Annotated[bool, Tag("Mandatory")]
    constraints: Annotated[tuple[Constraint, ...], Tag("Constraint")] = ()
    datatypes: Annotated[tuple[Datatype, ...], Tag("Datatype")]
    shape: Annotated[Shape, Tag("Shape")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Tensor):
    """Input tensor of an operator.

    Attributes:
        default: the text of the default value; see `defaults.parse_default`.
        repeated: whether it is variadic.
        static: whether it must be constant.
    """

    default: Annotated[str | None, Tag("Default", exact=True)] = None
    repeated: Annotated[bool, Tag("Repeated")] = False
    static: Annotated[bool, Tag("IsStaticTensor")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Tensor):
    """Output tensor of an operator.

    Attributes:
        repeated: whether it is variadic.
    """

    repeated: Annotated[bool, Tag("Repeated")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration(Node):
    """Names for the numbers 0, 1, 2, …."""

    names: Annotated[tuple[str, ...], Tag("Enum")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Tensor):
    """Parameter of an operator.

    Attributes:
        default: the text of the default value; see `defaults.parse_default`.
        enumeration: names for its numbers.
    """

    default: Annotated[str | None, Tag("Default", exact=True)] = None
    enumeration: Annotated[Enumeration | None, Tag("Enumeration")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDef(Node):
    """Definition of an operator.

    Attributes:
        name: the operator type.
        description: what the operator computes.
        references: the sources.
        inputs: the inputs; at least one.
        outputs: the outputs; at least one.
        parameters: the parameters.
        use_default_translation: whether it overrides the built-in operator of the same name when a
            model is imported.
        backends: the backends that support the operator.
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
    """Operators of a package."""

    op_defs: Annotated[tuple[OpDef, ...], Tag("OpDef")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalShape(Node):
    """Backend-specific layout of a tensor."""

    layout: Annotated[Layout | None, Tag("Layout")] = None
    text: Annotated[str | None, Tag("Text", exact=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalTensor(Node):
    """Backend-specific declarations about a tensor.

    Attributes:
        name: the name of the tensor.
        constraints: additional rules, or replacements for those of the same number.
        datatypes: the supported datatypes; empty if all are supported.
        shape: the layout.
        only_default: whether only the default is supported.
    """

    name: Annotated[str, Tag("Name")]
    constraints: Annotated[tuple[Constraint, ...], Tag("Constraint")] = ()
    datatypes: Annotated[tuple[Datatype, ...], Tag("Datatype")] = ()
    shape: Annotated[SupplementalShape | None, Tag("Shape")] = None
    only_default: Annotated[bool, Tag("OnlyDefaultSupported")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalOpDef(Node):
    """Backend-specific declarations about an operator.

    Attributes:
        name: the name of the operator.
        inputs: declarations about inputs.
        outputs: declarations about outputs.
        parameters: declarations about parameters.
    """

    name: Annotated[str, Tag("Name")]
    inputs: Annotated[tuple[SupplementalTensor, ...], Tag("Input")] = ()
    outputs: Annotated[tuple[SupplementalTensor, ...], Tag("Output")] = ()
    parameters: Annotated[tuple[SupplementalTensor, ...], Tag("Parameter")] = ()

    @property
    def tensors(self) -> Iterator[SupplementalTensor]:
        """The inputs, outputs and parameters."""
        yield from self.inputs
        yield from self.outputs
        yield from self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedOps(Node):
    """Names of the operators that a backend supports."""

    names: Annotated[tuple[str, ...], Tag("OpName")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementalOpDefList(Node):
    """Backend-specific declarations about the operators of a package.

    Attributes:
        backend: the name of the backend.
        supported: the supported operators.
        op_defs: declarations about single operators.
    """

    backend: Annotated[str, Attribute("Backend")]
    supported: Annotated[SupportedOps | None, Tag("SupportedOps")] = None
    op_defs: Annotated[tuple[SupplementalOpDef, ...], Tag("SupplementalOpDef")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDefCollection(Node):
    """Package of operators.

    Attributes:
        package_name: the name of the package, and the prefix of its libraries' names.
        domain: the domain of the operators in a model.
        version: the version of the package.
        use_qhpi: whether the kernels use Hexagon's plug-in interface.
        definitions: the operators.
        supplements: the backends' declarations.
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
        """Return the backends that support an operator, by its definition or a supplement."""
        supplemental = (
            supplement.backend
            for supplement in self.supplements
            if supplement.supported and op_def.name in supplement.supported.names
        )
        return tuple(dict.fromkeys((*op_def.backends, *supplemental)))


def plain(node: object) -> Any:
    """Convert a node to JSON types: fields by name, without defaults."""
    if isinstance(node, Node):
        return {
            name: [plain(value) for value in field_values] if xml.many else plain(field_values[0])
            for name, xml in layout_of(type(node)).items()
            if (field_values := values(node, name))
        } | ({"kind": type(node).__name__} if isinstance(node, Content | Code) else {})
    return node.value if isinstance(node, Enum) else node
