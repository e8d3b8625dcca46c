"""The options of compilation, which can be read from a TOML file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any, Self, TypeVar

from crosschip.hal import Options, Performance, Precision, Sizes
from crosschip.ir import InputError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import StrPath
from crosschip.ir.files import open_regular
from crosschip.ir.suggestion import did_you_mean

_Choice = TypeVar("_Choice", Precision, Performance)

Properties = Mapping[str, Mapping[str, str]]

_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Configuration:
    """The options of compilation. `str` returns TOML that `parse` reads back.

    Attributes:
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: the number of processor threads of a run; `None` leaves it to the devices.
        in_flight: the number of concurrent runs, among which devices on the processor divide its
            cores for the highest throughput; with `None`, a run may use all cores for the lowest
            latency, and `CompiledModel.submit` runs two at once.
        queue_size: the number of further runs that `CompiledModel.submit` accepts.
        performance: the balance between speed and power: `none`, `low`, `medium`, `high` or
            `extreme`; `docs/devices.md` says how each device applies it.
        properties: the properties of devices, by device name; those of unused devices are ignored.

    Raises:
        InputError: an option is invalid.
    """

    precision: str = "float32"
    threads: int | None = None
    in_flight: int | None = None
    queue_size: int = 64
    performance: str = "none"
    properties: Properties = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_choice("precision", self.precision, Precision)
        _check_choice("performance mode", self.performance, Performance)
        for name, count in (("threads", self.threads), ("in_flight", self.in_flight)):
            if count is not None:
                check_count(name, count)
        check_count("queue_size", self.queue_size)
        _check_properties(self.properties)

    @classmethod
    def parse(cls, text: str, where: str = "configuration") -> Self:
        """Parse a configuration in TOML.

        Raises:
            InputError: the text is no TOML or contains unknown options.
        """
        # Imported late: most configurations are arguments.
        import tomllib

        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"{where}: it is not TOML: {error}") from None
        options = [entry.name for entry in fields(cls)]
        for name in table:
            if name not in options:
                near = did_you_mean(name, options)
                raise InputError(
                    f"{where}: there is no option {name!r}{near}; there are {', '.join(options)}"
                )
        if isinstance(table.get("properties"), dict):
            table["properties"] = {
                device: _numbers_to_texts(settings)
                for device, settings in table["properties"].items()
            }
        try:
            return cls(**table)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    @classmethod
    def read(cls, path: StrPath) -> Self:
        """Read a configuration from a file.

        Raises:
            InputError: the file cannot be read or is no configuration.
        """
        try:
            with open_regular(path) as file:
                text = file.read(_MOST_BYTES + 1)
            if len(text) > _MOST_BYTES:
                raise InputError(f"{path}: it is larger than a configuration")
            return cls.parse(text.decode("utf-8"), str(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: it is not UTF-8: {error}") from None

    @classmethod
    def of(cls, argument: Configuration | StrPath | None) -> Configuration:
        """Return the argument if it is a `Configuration`, or read the file at a path.

        `None` gives the default configuration.

        Raises:
            InputError: the argument is something else, or the file cannot be read.
        """
        if argument is None:
            return cls()
        if isinstance(argument, Configuration):
            return argument
        if isinstance(argument, str | os.PathLike):
            return cls.read(argument)
        raise InputError(
            f"configuration is of type {type(argument).__name__}, but must be a Configuration or "
            f"the path of a file with one"
        )

    def overridden(
        self,
        precision: str | None = None,
        threads: int | None = None,
        performance: str | None = None,
        properties: Properties | None = None,
        in_flight: int | None = None,
    ) -> Configuration:
        """Return the configuration with other options where they are not `None`.

        Raises:
            InputError: an option is invalid.
        """
        overrides = {
            "precision": precision,
            "threads": threads,
            "in_flight": in_flight,
            "performance": performance,
        }
        changes: dict[str, Any] = {
            name: value for name, value in overrides.items() if value is not None
        }
        if properties is not None:
            _check_properties(properties)
            changes["properties"] = {
                device: {**self.properties.get(device, {}), **properties.get(device, {})}
                for device in dict.fromkeys([*self.properties, *properties])
            }
        return replace(self, **changes)

    def options(self, sizes: Sizes) -> Options:
        """Return the compile options for devices."""
        return Options(
            Precision(self.precision),
            self.threads,
            self.in_flight or 1,
            sizes,
            Performance(self.performance),
        )

    def __str__(self) -> str:
        lines = [f"precision = {_quote(self.precision)}"]
        for name, count in (("threads", self.threads), ("in_flight", self.in_flight)):
            if count is not None:
                lines.append(f"{name} = {count}")
        lines.append(f"queue_size = {self.queue_size}")
        lines.append(f"performance = {_quote(self.performance)}")
        for device, settings in self.properties.items():
            lines += ["", f"[properties.{_quote(device)}]"]
            lines += [f"{_quote(name)} = {_quote(text)}" for name, text in settings.items()]
        return "\n".join(lines) + "\n"


def check_count(name: str, value: object) -> None:
    """Raise InputError unless a value is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}, but must be an integer of at least 1")


def _check_choice(what: str, value: object, kind: type[_Choice]) -> None:
    options = [choice.value for choice in kind]
    if not isinstance(value, str) or value not in options:
        near = did_you_mean(str(value), options, most=1)
        raise InputError(f"there is no {what} {value!r}{near}; there are {', '.join(options)}")


def _numbers_to_texts(settings: object) -> object:
    """Convert whole numbers among properties to texts."""
    if not isinstance(settings, dict):
        return settings
    return {
        name: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in settings.items()
    }


def _check_properties(properties: object) -> None:
    sound = isinstance(properties, Mapping) and all(
        isinstance(device, str) and _is_texts(settings) for device, settings in properties.items()
    )
    if not sound:
        raise InputError(
            f"properties is {properties!r}, but must be texts by name, by device: "
            f'like {{"mychip": {{"cores": "2"}}}}'
        )


def _is_texts(settings: object) -> bool:
    return isinstance(settings, Mapping) and all(
        isinstance(text, str) and not any("\ud800" <= c <= "\udfff" for c in text)
        for pair in settings.items()
        for text in pair
    )


def _quote(text: str) -> str:
    """Quote a text as TOML: as JSON, with one more character escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
