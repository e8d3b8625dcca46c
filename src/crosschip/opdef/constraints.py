"""Grammar of machine-readable constraints, and its parser.

    rule       = and-rule {"or" and-rule}
    and-rule   = not-rule {"and" not-rule}
    not-rule   = ["not"] (comparison | "given" "(" tensor ")" | "(" rule ")")
    comparison = sum ((("==" | "!=" | "<" | "<=" | ">" | ">=") sum)+ | ["not"] "in" "{" sum, … "}")
    sum        = product {("+" | "-") product}
    product    = factor {("*" | "/" | "//" | "%") factor}
    factor     = ["-"] (number | datatype | value | "(" sum ")")
    value      = tensor | ("rank" | "dtype" | "shape" | "size" | "count") "(" tensor ")"
               | "dim" "(" tensor "," sum ")"
    tensor     = a name, as in in[0]; any other one in single quotes
    datatype   = FLOAT_32, QNN_DATATYPE_FLOAT_32, …

A tensor alone denotes its elements. A comparison of elements must hold for each of them, and `not
in` excludes each of them. For a repeated tensor, a rule must hold for each operand. Both sides of a
comparison have the same kind: numbers, datatypes or shapes; only numbers are ordered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeAlias, TypeVar

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import Constraint, OpDef, Tensor

T = TypeVar("T")

Kind: TypeAlias = Literal["number", "datatype", "shape"]

FUNCTIONS: Final[dict[str, Kind]] = {
    "rank": "number",
    "dtype": "datatype",
    "shape": "shape",
    "size": "number",
    "count": "number",
    "dim": "number",
}
"""The functions of a tensor, and the kind of their results."""

_LONGEST = 1000
_DEEPEST = 32
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\[[A-Za-z0-9_]+\])*)
      | '(?P<quoted>[^']+)'
      | (?P<sign>==|!=|<=|>=|//|[<>+\-*/%(){},])
    )""",
    re.VERBOSE,
)
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = ("and", "or", "not", "in", "given")
_DATATYPES = {
    word: datatype
    for datatype in Datatype
    if datatype is not Datatype.BACKEND_SPECIFIC
    for word in (datatype.name, datatype.value)
}


class GrammarError(ValueError):
    """Text that is not a rule.

    Attributes:
        position: the index of the first unexpected character.
    """

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"at character {position + 1}: {message}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Number:
    """Number literal."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Type:
    """Datatype literal."""

    value: Datatype


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Property:
    """Result of one of `FUNCTIONS` for a tensor; only `dim` has an `axis`."""

    function: str
    tensor: str
    axis: Value | None = None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers combined by `+`, `-`, `*`, `/`, `//` or `%`."""

    sign: str
    left: Value
    right: Value


Value: TypeAlias = Number | Type | Elements | Property | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """Relation between two values."""

    relation: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Member:
    """Membership of a value, or of each of its elements, in a list of options."""

    value: Value
    options: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """Presence of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Negation:
    """Negated condition."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Junction:
    """Conjunction of conditions; a disjunction if `is_conjunction` is false."""

    is_conjunction: bool
    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Member | Present | Negation | Junction


def parse_rule(text: str) -> Condition:
    """Parse a rule.

    >>> parse_rule("rank(in[0]) >= 1").left
    Property(function='rank', tensor='in[0]', axis=None)

    Raises:
        GrammarError: the text is not a rule.
    """
    if len(text) > _LONGEST:
        raise GrammarError(_LONGEST, f"a rule has at most {_LONGEST} characters")
    return _Parser(text).parse()


def tensors_of(part: Condition | Value) -> Iterator[str]:
    """Yield the names of the tensors in a rule."""
    match part:
        case Elements(name) | Present(name):
            yield name
        case Property(_, name, axis):
            yield name
            if axis is not None:
                yield from tensors_of(axis)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield from tensors_of(left)
            yield from tensors_of(right)
        case Member(value, options):
            for each in (value, *options):
                yield from tensors_of(each)
        case Negation(inner):
            yield from tensors_of(inner)
        case Junction(_, parts):
            for inner in parts:
                yield from tensors_of(inner)


def rules_of(op_def: OpDef) -> Iterator[tuple[Tensor, Constraint, Condition]]:
    """Yield the machine-readable constraints of an operator, each with the tensor that declares it.

    A constraint is machine-readable if its text is a rule that names only tensors of the operator;
    other texts are for people.
    """
    tensor_names = {tensor.name for tensor in op_def.tensors}
    for tensor in op_def.tensors:
        for constraint in tensor.constraints:
            try:
                rule = parse_rule(constraint.text)
            except GrammarError:
                continue
            if tensor_names.issuperset(tensors_of(rule)):
                yield tensor, constraint, rule


@dataclass(frozen=True, slots=True)
class _Token:
    sort: str
    text: str
    position: int


class _Parser:
    """Recursive-descent parser of one rule."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parse(self) -> Condition:
        rule = self._junction()
        if self._peek().sort != "end":
            self._fail("nothing more is expected")
        return rule

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> str:
        """Return and skip the next token if it is one of these signs or words; else return `""`."""
        token = self._peek()
        if token.text not in texts or token.sort in ("quoted", "end"):
            return ""
        self._next += 1
        return token.text

    def _need(self, text: str) -> None:
        if not self._take(text):
            self._fail(f"{text!r} is expected")

    def _fail(self, message: str) -> NoReturn:
        raise GrammarError(self._peek().position, message)

    def _junction(self) -> Condition:
        return self._join("or", lambda: self._join("and", self._negation))

    def _join(self, word: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word == "and", tuple(parts))

    def _negation(self) -> Condition:
        if self._take("not"):
            return Negation(self._nested(self._negation))
        if self._take("given"):
            self._need("(")
            name = self._tensor()
            self._need(")")
            return Present(name)
        start = self._next
        try:
            return self._comparison()
        except GrammarError as error:
            # `(a < b) or …` and `(a + b) < …` begin alike: backtrack.
            self._next = start
            if not self._take("("):
                raise
            try:
                rule = self._nested(self._junction)
                self._need(")")
            except GrammarError as other:
                raise max(error, other, key=lambda e: e.position) from None
            return rule

    def _nested(self, part: Callable[[], T]) -> T:
        if self._depth == _DEEPEST:
            self._fail(f"parentheses stand in at most {_DEEPEST} others")
        self._depth += 1
        try:
            return part()
        finally:
            self._depth -= 1

    def _comparison(self) -> Condition:
        left = self._sum()
        negated = bool(self._take("not"))
        if self._take("in"):
            options = tuple(self._options(left))
            if not negated:
                return Member(left, options)
            return Junction(True, tuple(Comparison("!=", left, option) for option in options))
        if negated:
            self._fail("'in' is expected")
        conditions: list[Condition] = []
        while relation := self._take(*_RELATIONS):
            right = self._sum()
            self._check(relation, left, right)
            conditions.append(Comparison(relation, left, right))
            left = right
        if not conditions:
            self._fail("a comparison is expected")
        return conditions[0] if len(conditions) == 1 else Junction(True, tuple(conditions))

    def _options(self, left: Value) -> Iterator[Value]:
        self._need("{")
        while True:
            right = self._sum()
            self._check("==", left, right)
            yield right
            if not self._take(","):
                break
        self._need("}")

    def _check(self, relation: str, left: Value, right: Value) -> None:
        kinds = {_kind(left), _kind(right)}
        if len(kinds) > 1:
            self._fail(f"a {_kind(left)} is not compared with a {_kind(right)}")
        if relation not in ("==", "!=") and kinds != {"number"}:
            self._fail(f"a {_kind(left)} is neither less nor greater")

    def _sum(self) -> Value:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "//", "%"), self._factor))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], Value]) -> Value:
        left = part()
        while sign := self._take(*signs):
            right = part()
            if {_kind(left), _kind(right)} != {"number"}:
                self._fail(f"only numbers are put together by {sign!r}")
            left = Arithmetic(sign, left, right)
        return left

    def _factor(self) -> Value:
        if self._take("-"):
            inner = self._nested(self._factor)
            if _kind(inner) != "number":
                self._fail("only a number can be negative")
            return Arithmetic("-", Number(0), inner)
        if self._take("("):
            value = self._nested(self._sum)
            self._need(")")
            return value
        token = self._peek()
        if token.sort == "number":
            self._next += 1
            is_integer = token.text.isdigit()
            return Number(int(token.text) if is_integer else float(token.text))
        if token.sort == "name" and token.text in _DATATYPES:
            self._next += 1
            return Type(_DATATYPES[token.text])
        following = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if token.sort == "name" and token.text in FUNCTIONS and following.text == "(":
            return self._property()
        return Elements(self._tensor())

    def _property(self) -> Property:
        function = self._take(*FUNCTIONS)
        self._need("(")
        name = self._tensor()
        axis = None
        if function == "dim":
            self._need(",")
            axis = self._nested(self._sum)
            if _kind(axis) != "number":
                self._fail("an axis is a number")
        self._need(")")
        return Property(function, name, axis)

    def _tensor(self) -> str:
        token = self._peek()
        if token.sort not in ("name", "quoted") or (token.sort == "name" and token.text in _WORDS):
            self._fail("the name of a tensor is expected")
        self._next += 1
        return token.text


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise GrammarError(start, f"{text[start]!r} is none of its signs")
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        position = match.end()
    yield _Token("end", "", len(text))


def _kind(value: Value) -> Kind:
    match value:
        case Type():
            return "datatype"
        case Property(function):
            return FUNCTIONS[function]
        case _:
            return "number"
