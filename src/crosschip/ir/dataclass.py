"""The decorator of data classes, made so that a process starts sooner.

It makes the same classes as `dataclasses.dataclass`, in a fraction of the time: that compiles a
function's source for each method of each class. Here only constructors are compiled, each when it
is first asked for; the other methods are the same functions for every class, which know its fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Fields = Sequence[dataclasses.Field[Any]]
Methods = dict[str, object]


def _dataclass(
    cls: type[Any] | None = None,
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """`dataclasses.dataclass`, of whose options those are here that are of use."""

    def make(cls: type[Any]) -> type[Any]:
        written = dict(vars(cls))
        # Python's own refuses to mix what is frozen with what is not, going by what it made itself.
        inherits = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        class_ = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only,
            frozen=frozen and inherits,
        )(cls)  # fmt: skip
        fields = dataclasses.fields(class_)
        methods = _constructing(class_, fields, frozen=frozen) | _showing(fields)
        if eq:
            methods |= _comparing(fields, hashes=frozen)
        if frozen and not inherits:
            class_.__dataclass_params__.frozen = True
            methods |= _protecting(class_, fields)
            methods |= _copying(fields) if slots else {}
        for name, method in methods.items():
            if written.get(name) is None:  # `__hash__` is None where equality is one's own
                setattr(class_, name, method)
        return class_

    return make if cls is None else make(cls)


class _Missing:
    """Stands for an argument that was left out, where what replaces it is made."""

    def __repr__(self) -> str:
        return "<factory>"


def _constructing(cls: type[Any], fields: Fields, *, frozen: bool) -> Methods:
    _check_order(fields)
    return {"__init__": _Constructor(cls, fields, frozen=frozen)}


def _check_order(fields: Fields) -> None:
    """Refuse a field that must be given after one that can be left out.

    Raises:
        TypeError: there is one.
    """
    left_out = ""
    for field in fields:
        if not field.init or field.kw_only:
            continue
        if field.default is not dataclasses.MISSING or (
            field.default_factory is not dataclasses.MISSING
        ):
            left_out = field.name
        elif left_out:
            raise TypeError(
                f"field {field.name!r} must be given, but comes after {left_out!r}, which can be "
                f"left out; put it first"
            )


class _Constructor:
    """Stands in a class for its constructor, and takes itself out when somebody asks for that."""

    def __init__(self, cls: type[Any], fields: Fields, *, frozen: bool) -> None:
        self._cls = cls
        self._fields = fields
        self._frozen = frozen

    def __get__(self, instance: Any, cls: type[Any]) -> Callable[..., None]:
        method = _constructor(self._cls, self._fields, frozen=self._frozen)
        self._cls.__init__ = method
        bound: Callable[..., None] = method if instance is None else method.__get__(instance, cls)
        return bound


def _constructor(cls: type[Any], fields: Fields, *, frozen: bool) -> Any:
    """The constructor, compiled."""
    space: dict[str, Any] = {"_set_field": object.__setattr__, "_missing": _Missing()}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for field in fields:
        name = value = argument = field.name
        if field.default_factory is not dataclasses.MISSING:
            space[f"_make_{name}"] = field.default_factory
            value, argument = f"_make_{name}()", f"{name}=_missing"
            if field.init:
                value = f"{value} if {name} is _missing else {name}"
        elif field.default is not dataclasses.MISSING:
            space[f"_default_{name}"] = field.default
            argument = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        elif not field.init:
            continue
        if field.init:
            parameters[bool(field.kw_only)].append(argument)
        lines.append(f"_set_field(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    named = ["*", *parameters[True]] if parameters[True] else []
    arguments = ", ".join(["self", *parameters[False], *named])
    # Names of fields are all that comes into it, and those are the programmer's.
    exec(f"def __init__({arguments}):\n " + "\n ".join(lines or ["pass"]), space)
    method = space["__init__"]
    method.__qualname__ = f"{cls.__qualname__}.__init__"
    method.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return method


def _showing(fields: Fields) -> Methods:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({values})"

    return {"__repr__": shown}


def _comparing(fields: Fields, *, hashes: bool) -> Methods:
    values = _values([field.name for field in fields if field.compare])
    counting = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
    counted = _values(counting)

    def equal(self: Any, other: Any) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(counted(self))

    return {"__eq__": equal, "__hash__": hashed if hashes else None}


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes the values of fields, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _protecting(cls: type[Any], fields: Fields) -> Methods:
    names = {field.name for field in fields}

    def set_value(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_value, "__delattr__": delete}


def _copying(fields: Fields) -> Methods:
    """The methods by which what has slots that cannot be set is copied."""
    names = [field.name for field in fields]

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state, "__setstate__": restore}


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
