"""Faster replacement of `dataclasses.dataclass`, to shorten the start of a process.

`dataclasses` compiles source code for each method of each class. This module compiles only
constructors, each at first use. All other methods are closures over the class's fields.
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
    """`dataclasses.dataclass` with the options that crosschip uses."""

    def make(cls: type[Any]) -> type[Any]:
        defined = dict(vars(cls))
        # `dataclasses` rejects a frozen class with an unfrozen base, judging by its own attributes.
        inherits = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        class_ = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only,
            frozen=frozen and inherits,
        )(cls)  # fmt: skip
        fields = dataclasses.fields(class_)
        methods = _constructor_methods(class_, fields, frozen=frozen) | _repr_methods(fields)
        if eq:
            methods |= _comparison_methods(fields, hashes=frozen)
        if frozen and not inherits:
            class_.__dataclass_params__.frozen = True
            methods |= _immutability_methods(class_, fields)
            methods |= _pickling_methods(fields) if slots else {}
        for name, method in methods.items():
            if defined.get(name) is None:  # `__hash__` is None in a class that defines `__eq__`
                setattr(class_, name, method)
        return class_

    return make if cls is None else make(cls)


class _Missing:
    """Default of a field with a factory: the constructor calls the factory instead."""

    def __repr__(self) -> str:
        return "<factory>"


def _constructor_methods(cls: type[Any], fields: Fields, *, frozen: bool) -> Methods:
    _check_order(fields)
    return {"__init__": _Constructor(cls, fields, frozen=frozen)}


def _check_order(fields: Fields) -> None:
    """Raise TypeError if a field without a default follows one with a default."""
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
    """Descriptor that compiles the class's constructor at first use and replaces itself with it."""

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
    """Compile the constructor."""
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
    # The source contains nothing but field names, which the programmer wrote.
    exec(f"def __init__({arguments}):\n " + "\n ".join(lines or ["pass"]), space)
    method = space["__init__"]
    method.__qualname__ = f"{cls.__qualname__}.__init__"
    method.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return method


def _repr_methods(fields: Fields) -> Methods:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({values})"

    return {"__repr__": shown}


def _comparison_methods(fields: Fields, *, hashes: bool) -> Methods:
    values = _values([field.name for field in fields if field.compare])
    counting = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
    counted = _values(counting)

    def equal(self: Any, other: Any) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(counted(self))

    return {"__eq__": equal, "__hash__": hashed if hashes else None}


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of the named fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _immutability_methods(cls: type[Any], fields: Fields) -> Methods:
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


def _pickling_methods(fields: Fields) -> Methods:
    """Return the pickling methods of a frozen class with slots."""
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
