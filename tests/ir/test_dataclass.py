"""Our `dataclass` decorator creates the same classes as Python's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
from collections.abc import Callable
from dataclasses import field, fields, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from crosschip.ir.dataclass import dataclass

OPTIONS = [
    dict(zip(("frozen", "slots", "kw_only", "eq"), flags, strict=True))
    for flags in itertools.product((False, True), (False, True), (False, True), (True, False))
]


def families(options: dict[str, bool]) -> list[SimpleNamespace]:
    """Return the same classes, decorated by Python's decorator and by ours."""
    return [classes(made, options) for made in (dataclasses.dataclass, dataclass)]


def classes(decorator: Callable[..., Any], options: dict[str, bool]) -> SimpleNamespace:
    @decorator(**options)
    class Nothing:
        """Class without fields."""

    @decorator(**options)
    class Plain:
        """Class with all kinds of fields."""

        shared: ClassVar[int] = 3
        first: int
        second: str = "two"
        many: list[int] = field(default_factory=list)
        aside: object = field(default=None, compare=False)
        hidden: float = field(default=0.5, repr=False)
        settled: int = field(default=7, init=False)
        built: list[int] = field(default_factory=list, init=False)

        def double(self) -> int:
            return 2 * self.first

    @decorator(**options)
    class Derived(Plain):
        """Subclass with another field and another default."""

        second: str = "other"
        last: int = 9

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("it is negative")

    @decorator(**options)
    class Own:
        """Class with its own methods."""

        first: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    @decorator(**options)
    class Equal:
        """Class with its own equality, and so without a hash."""

        first: int

        def __eq__(self, other: object) -> bool:
            return True

    return SimpleNamespace(Nothing=Nothing, Plain=Plain, Derived=Derived, Own=Own, Equal=Equal)


def told(action: Callable[..., Any], *arguments: object, **named: object) -> object:
    """Return the result of a function, or the type of its error."""
    try:
        return action(*arguments, **named)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_is_that_of_pythons_decorator(options: dict[str, bool]) -> None:
    python, ours = families(options)
    for theirs, made in zip(vars(python).values(), vars(ours).values(), strict=True):
        assert [(f.name, f.type, f.default) for f in fields(theirs)] == [
            (f.name, f.type, f.default) for f in fields(made)
        ]
        assert str(inspect.signature(theirs)) == str(inspect.signature(made))
        assert theirs.__match_args__ == made.__match_args__
        assert theirs.__doc__ == made.__doc__
        assert theirs.__qualname__ == made.__qualname__
        assert theirs.__init__.__qualname__ == made.__init__.__qualname__
        assert vars(theirs).get("__slots__") == vars(made).get("__slots__")
        assert (theirs.__hash__ is None) == (made.__hash__ is None)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_its_objects_are_those_of_pythons_decorator(options: dict[str, bool]) -> None:
    results = []
    for family in families(options):
        found: list[object] = []
        for kind in (family.Plain, family.Derived):
            one, other = kind(first=1), kind(first=1, aside=2)
            third = kind(first=1, second="three", many=[4])
            found += [repr(one), repr(third), one == other, one == third, one != third]
            found += [one == family.Nothing(), one.double(), one.settled, one.built]
            found += [one.many is not other.many, one.built is not other.built]
            found += [told(setattr, one, "first", 5), one.first]
            # Which error it is differs: Python's, with slots, is one about `super`.
            found += [isinstance(told(setattr, one, "unheard", 5), type)]
            found += [told(delattr, other, "first")]
            found += [repr(copy.copy(third)), repr(copy.deepcopy(third))]
            found += [repr(replace(third, second="four")), dataclasses.asdict(third)]
            found += [
                told(kind),
                told(kind, 1, settled=2),
                repr(told(kind, 1)) == repr(kind(first=1)),
            ]
            found += [type(told(hash, third)).__name__]
            found.append(repr(told(kind, first=-1)))
        found += [repr(family.Nothing()), family.Nothing() == family.Nothing()]
        found += [told(hash, family.Own(first=1)), repr(family.Own(first=1))]
        found += [family.Own(first=1) == 3, type(told(hash, family.Equal(first=1))).__name__]
        results.append([each.__name__ if isinstance(each, type) else each for each in found])
    python, ours = results
    assert [str(each) for each in ours] == [str(each) for each in python]


@dataclass(frozen=True, slots=True)
class Value:
    """Class at module level, so that pickle finds it."""

    first: int
    inner: Any = None
    uncounted: Any = field(default=None, hash=False)


def test_values_that_are_equal_have_one_hash_and_survive_pickling() -> None:
    nan = float("nan")
    one, other = Value(3, ("a", nan)), Value(3, ("a", nan))
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, Value(4)}) == 2
    assert pickle.loads(pickle.dumps(Value(3, "x"))) == Value(3, "x")
    assert Value(3, uncounted={}) != Value(3)
    assert hash(Value(3, uncounted={})) == hash(Value(3))
    assert replace(one, first=4) == Value(4, ("a", nan))


def test_classes_of_either_decorator_inherit_from_those_of_the_other() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Theirs(Value):
        last: int = 3

    @dataclass(frozen=True, slots=True)
    class Ours(Theirs):
        more: int = 4

    value = Ours(1)
    assert (value.inner, value.last, value.more) == (None, 3, 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.first = 2  # type: ignore[misc]  # that is what is tested
    with pytest.raises(TypeError, match="cannot inherit"):
        dataclass(type("Changing", (Value,), {}))


def test_a_value_that_holds_itself_is_shown() -> None:
    @dataclass
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring) == f"{Ring.__qualname__}(next=...)"


def test_a_field_that_cannot_be_left_out_comes_first() -> None:
    with pytest.raises(TypeError, match=r"'second' must be given, but comes after 'first'"):

        @dataclass(frozen=True)
        class Wrong:
            first: int = 1
            second: int  # type: ignore[misc]  # that is what is tested
