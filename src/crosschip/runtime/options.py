"""Option groups of `compile` and `explain`: shapes and cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.ir import InputError
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.configuration import check_count

if TYPE_CHECKING:
    from crosschip.runtime.cache.store import CacheArgument
    from crosschip.runtime.shapes.arguments import Profiles, Ranges

Shapes = Mapping[str, Sequence[int | None] | int]
"""Shapes by the name of an input, with `None` for a size that stays open; or sizes by name."""


@dataclass(frozen=True, slots=True)
class ShapeOptions:
    """The dynamic sizes of a model: fixed, bounded, or listed.

    Attributes:
        shapes: shapes of inputs, by name, with `None` for a size that stays dynamic; or single
            sizes, by the names in the inputs' types.
        ranges: the least and the greatest value of dynamic sizes, by the size's name, optionally
            with the usual value between them; or two or three such shapes by the name of an input.
            Some devices compile once for a range; inputs outside of it are refused.
        profiles: combinations of sizes, by name, to compile for in advance; or shapes by the name
            of an input, or for each input the list of its shapes.
        buckets: sizes to pad to, by the size's name, for devices that compile per shape, in
            segments whose operators compute each row independently.
        specializations: the maximum number of sets of input shapes for which a device that compiles
            per shape keeps programs; the least recently used one is dropped.

    Raises:
        InputError: `specializations` is less than 1.
    """

    shapes: Shapes | None = None
    ranges: Ranges | None = None
    profiles: Profiles = ()
    buckets: Mapping[str, Sequence[int]] | None = None
    specializations: int = 16

    def __post_init__(self) -> None:
        check_count("specializations", self.specializations)

    @classmethod
    def of(cls, argument: Shapes | ShapeOptions | None) -> ShapeOptions:
        """Return the options for the argument `shapes` of `compile`."""
        return argument if isinstance(argument, ShapeOptions) else cls(argument)


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The location of the program cache.

    Attributes:
        location: `True` for the default folder, a folder, a `crosschip.Memory`, or `False` for
            none. With a token, also a buffer with the result of `CompiledModel.to_bytes`.
        size: the maximum size of the cache folder in bytes; `None` for `CROSSCHIP_CACHE_SIZE`, or
            2 GiB.
        token: a name under which the compiled model is cached as a whole, as `<token>.nnc` in a
            folder, instead of its single programs; `True` for a hash of the model
            (`CompiledModel.token`). A file of that name for another model, other devices or other
            options is ignored with a warning, and the model is compiled.
    """

    location: CacheArgument = True
    size: int | None = None
    token: str | bool = False

    @classmethod
    def of(cls, argument: CacheArgument | CacheOptions) -> CacheOptions:
        """Return the options for the argument `cache` of `compile`.

        Raises:
            InputError: the options have another location.
        """
        if not isinstance(argument, CacheOptions):
            return cls(argument)
        if isinstance(argument.location, CacheOptions):
            raise InputError("cache is a CacheOptions whose location is a CacheOptions")
        return argument
