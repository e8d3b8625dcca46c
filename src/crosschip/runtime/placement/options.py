"""Placement options: the strategy, partition configurations, pins and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from crosschip.ir import InputError, Model, Operation
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.hal import Kind
    from crosschip.runtime.placement.constraints import AllowedDevices, Constraints


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """The caller's wishes for the placement.

    Attributes:
        strategy: `measured` for the placement of least measured time, which may be on several
            devices; `order` for the first device in the order of preference that supports an
            operation. By default it is `measured` for the devices `"auto"`, and `order` for others.
        tuning_seconds: the time for measurements, if they are not in the cache.
        memory: the maximum number of bytes that the weights on a device, and the tensors that it
            passes to others, occupy, by device. What does not fit runs on other devices.
        pin: the only allowed device of operations that match a pattern. A pattern is
            `type:inputs:outputs` as in a configuration, or the name of an operation; the type may
            contain wildcards. The last matching pattern counts, before any configuration.
        partition: operators that run on processors after the first device instead of on it: the
            path of a configuration in NNAdapter's format, or its content as text or bytes.
        mixed_precision: operators that compute in float32, in a configuration of the same format:
            on dequantized tensors in a quantized model, or in float32 on devices that would compute
            them in bfloat16 or float16.
        min_segment: the fewest operations of a segment; smaller segments are merged into those of
            another device that supports them, if that gives fewer segments.
        max_segments: the maximum number of segments; segments are merged down to it.
        strict: whether it is an error if an operation's first device declines it or fails to
            compile it.
        isolate: whether each device runs in a driver process, so that a crash of the device does
            not end the program: `openvino` stands for `openvino@driver`. Runs that were in flight
            are repeated in a new process or, after too many crashes, on the next device.

    Raises:
        InputError: a value has the wrong type or is too small.
    """

    strategy: Literal["measured", "order"] | None = None
    tuning_seconds: float = 10.0
    memory: Mapping[str, int] | None = None
    pin: Mapping[str, str] | None = None
    partition: str | bytes | Path | None = None
    mixed_precision: str | bytes | Path | None = None
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False
    isolate: bool = False

    @classmethod
    def of(cls, argument: PlacementOptions | str | None) -> PlacementOptions:
        """Return the options for an argument of `compile`: options, a strategy or nothing.

        Raises:
            InputError: it is something else.
        """
        if isinstance(argument, str):
            return cls(strategy=argument)  # type: ignore[arg-type]  # checked there
        if argument is not None and not isinstance(argument, cls):
            raise InputError(
                f"placement is {argument!r}, but must be 'measured', 'order' or PlacementOptions"
            )
        return argument or cls()

    @property
    def moves(self) -> bool:
        """Return whether options other than the devices' order decide where operations run."""
        limits = self.min_segment > 1 or self.max_segments is not None
        limits = limits or bool(self.memory)
        return self.partition is not None or bool(self.pin) or limits

    def measures(self, devices: object) -> bool:
        """Return whether devices are measured: for `"auto"`, and for lists on request.

        Args:
            devices: the argument of `compile`.
        """
        return devices == "auto" or self.strategy == "measured"

    def words(self) -> tuple[object, ...]:
        """Return the constraints as plain values, with the content of configuration files.

        Raises:
            InputError: a configuration cannot be read or is malformed.
        """
        pins = [*(self.pin or {}).items()]
        partition = _entries("partition", self.partition)
        memory, measuring = [*(self.memory or {}).items()], (self.strategy, self.tuning_seconds)
        limits = self.min_segment, self.max_segments, memory
        return partition, pins, limits, self.strict, measuring

    def float32_entries(self) -> list[str]:
        """Return the entries of `mixed_precision` as plain values.

        Raises:
            InputError: the configuration is malformed.
        """
        return _entries("mixed_precision", self.mixed_precision)

    def __post_init__(self) -> None:
        for name, value in (("min_segment", self.min_segment), ("max_segments", self.max_segments)):
            number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not number and not (value is None and name == "max_segments"):
                raise InputError(f"{name} is {value!r}, but must be an integer of at least 1")
        self._check_measuring()
        for name, flag in (("strict", self.strict), ("isolate", self.isolate)):
            if not isinstance(flag, bool):
                raise InputError(f"{name} is {flag!r}, but must be True or False")
        pin = {} if self.pin is None else self.pin
        if not isinstance(pin, Mapping) or not all(
            isinstance(text, str) for pair in pin.items() for text in pair
        ):
            raise InputError(
                f'pin is {pin!r}, but must be devices by pattern, like {{"conv2d": "openvino"}}'
            )

    def _check_measuring(self) -> None:
        if self.strategy not in (None, "measured", "order"):
            raise InputError(f"strategy is {self.strategy!r}, but must be 'measured' or 'order'")
        seconds = self.tuning_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise InputError(f"tuning_seconds is {seconds!r}, but must be a number of at least 0")
        memory = {} if self.memory is None else self.memory
        if not isinstance(memory, Mapping) or not all(
            isinstance(name, str) and type(limit) is int and limit >= 0
            for name, limit in memory.items()
        ):
            raise InputError(
                f'memory is {memory!r}, but must be bytes by device, like {{"xla": 2_000_000_000}}'
            )

    def constraints(self, model: Model, original: Model, kinds: Mapping[str, Kind]) -> Constraints:
        """Return the constraints for a model; warn of entries without a match.

        Args:
            model: the model to place.
            original: the model before passes.
            kinds: the kind of each device, by name, in the order of preference.

        Raises:
            InputError: a configuration is malformed, a pin names an unknown device or matches no
                operation, or no processor can run the operators of the partition.
        """
        # Imported late: a plan is loaded without placing anything.
        from crosschip.runtime.placement.constraints import Constraints

        unknown = sorted({*(self.memory or {})} - {*kinds})
        if unknown:
            raise InputError(
                f"memory limits {unknown[0]!r}, but the devices are {', '.join(kinds)}"
            )
        return Constraints(
            self._allowed_devices(model, original, kinds),
            self.min_segment,
            self.max_segments,
            self.strict,
            dict(self.memory or {}),
        )

    def _allowed_devices(
        self, model: Model, original: Model, kinds: Mapping[str, Kind]
    ) -> Mapping[Operation, AllowedDevices]:
        if self.partition is None and not self.pin:
            return {}
        # Imported late: few requests have pins or partitions.
        from crosschip.runtime.placement.allowed_devices import allowed_devices

        return allowed_devices(self.partition, self.pin or {}, model, original, kinds)


def _entries(name: str, source: str | bytes | Path | None) -> list[str]:
    if source is None:
        return []
    # Imported late: few requests have configurations.
    from crosschip.runtime.placement.partition import words_of

    return words_of(source, name)
