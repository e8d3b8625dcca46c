"""Options of `compile` and `explain` that belong together: of shapes, and of the cache."""

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
    """The sizes that a model leaves open: fixed, bounded, or listed.

    Attributes:
        shapes: fixed shapes for inputs, by name, with `None` for a size that stays open; or single
            sizes, by the names that the inputs' types have for them.
        ranges: the least and the greatest value of open sizes, by the size's name, with the usual
            one between them if you like; or two or three such shapes by the name of an input. Some
            devices compile once for a range; inputs outside of it are refused.
        profiles: values of open sizes, by name, to compile for at once; or shapes by the name of an
            input, or for each input the list of its shapes.
        buckets: sizes to pad to, by the size's name, where a device compiles for each set of shapes
            and the operators of its segment compute each row by itself.
        specializations: the largest number of sets of input shapes for which a device that compiles
            for each keeps programs; the least recently used goes first.

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
        """The options for the argument `shapes` of `compile`."""
        return argument if isinstance(argument, ShapeOptions) else cls(argument)


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The place where compiled programs are kept.

    Attributes:
        location: `True` for the default folder, a folder, a `crosschip.Memory`, or `False` for
            none. With a token, also a buffer with what `CompiledModel.to_bytes` returned.
        size: the number of bytes that the cache folder may take; `None` for `CROSSCHIP_CACHE_SIZE`,
            or 2 GiB.
        token: a name under which the compiled model is kept as a whole, as `<token>.nnc` in a
            folder, instead of its programs one by one; `True` for one made from the content of the
            model (`CompiledModel.token`). A file of that name for another model, other devices or
            other options is not used: a warning says so, and the model is compiled.
    """

    location: CacheArgument = True
    size: int | None = None
    token: str | bool = False

    @classmethod
    def of(cls, argument: CacheArgument | CacheOptions) -> CacheOptions:
        """The options for the argument `cache` of `compile`.

        Raises:
            InputError: the location of one is another.
        """
        if not isinstance(argument, CacheOptions):
            return cls(argument)
        if isinstance(argument.location, CacheOptions):
            raise InputError("cache is a CacheOptions whose location is a CacheOptions")
        return argument
