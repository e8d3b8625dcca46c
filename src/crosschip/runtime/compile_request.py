"""What a caller of `compile` or `explain` wants of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING

from crosschip.ir import Budget
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.configuration import Configuration, Properties, check_count
from crosschip.runtime.placement.directives import Directives

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.runtime.opening import Devices
    from crosschip.runtime.shapes.arguments import Profiles, Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """All that bears on what a model becomes, but for the model itself and what is installed.

    Attributes:
        devices: those that it may go to.
        shapes: fixed shapes of inputs, or single sizes.
        settings: precision, threads, runs at once, performance, properties.
        demanded: the properties that must be for devices which are opened.
        ranges: the values of open sizes.
        profiles: values of open sizes to compile for at once.
        buckets: sizes to pad to.
        specializations: for how many sets of shapes programs are kept.
        directives: what is said about placement.
        mixed_precision: operators that compute in float32, whatever the others do.
        isolate: whether devices run in processes of their own.
        budget: what compiling may cost.

    Raises:
        InputError: a value is none.
    """

    devices: Devices
    shapes: Mapping[str, Sequence[int | None] | int] | None = None
    settings: Configuration = field(default_factory=Configuration)
    demanded: Properties = field(default_factory=dict)
    ranges: Ranges | None = None
    profiles: Profiles = ()
    buckets: Mapping[str, Sequence[int]] | None = None
    specializations: int = 16
    directives: Directives = field(default_factory=Directives)
    mixed_precision: str | bytes | Path | None = None
    isolate: bool = False
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_count("specializations", self.specializations)
        self.directives.check()

    def words(self) -> str:
        """A text that two have in common only if they want the same.

        It has every field in it, with the content of configurations that are in files.

        Raises:
            InputError: a configuration is not of its form, or cannot be read.
            TypeError: a value is of a type that has no such text, as an instance of a device.
        """
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        found["directives"] = self.directives.words()
        if self.mixed_precision is not None:
            # Its form is needed only where there is one.
            from crosschip.runtime.placement.partition import words_of

            found["mixed_precision"] = words_of(self.mixed_precision, "mixed_precision")
        return canonical(found)
