"""Parsing of the callers' ranges, profiles and buckets of dynamic sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosschip.hal import Sizes
from crosschip.ir import Dim, InputError, TensorType
from crosschip.ir.shape_binding import bind, concrete, open_names
from crosschip.runtime.shapes.padding import Buckets

Ranges = Mapping[str, Sequence[int] | Sequence[Sequence[int]]]
"""(minimum, maximum) or (minimum, usual, maximum) of a size or of an input's shape, by name."""

Profile = Mapping[str, int | Sequence[int]]
"""Values of sizes, or shapes of inputs, by name."""

Profiles = Sequence[Profile] | Mapping[str, Sequence[Sequence[int]]]
"""A list of profiles; or, by the name of an input, its shapes in each profile."""


def sizes_from(
    types: Mapping[str, TensorType],
    ranges: Ranges | None,
    profiles: Profiles | None,
    specializations: int,
) -> Sizes:
    """Return the ranges and profiles of sizes for devices.

    Args:
        types: the types of the model's inputs, by name.
        ranges: as for `compile`.
        profiles: as for `compile`.
        specializations: the maximum number of sets of shapes with a program.

    Raises:
        InputError: an argument is malformed, or does not fit the model's inputs.
    """
    bounds: dict[str, tuple[int, int]] = {}
    usual: dict[str, int] = {}
    for name, bounds_argument in _items(
        "ranges", {} if ranges is None else ranges, "{'N': (1, 8)}"
    ):
        for size, (least, *middle, most) in _bounds(types, name, bounds_argument).items():
            if bounds.setdefault(size, (least, most)) != (least, most):
                raise InputError(
                    f"the size {size} is given the range {bounds[size]} and, by input {name!r}, "
                    f"{(least, most)}"
                )
            usual.update((size, value) for value in middle)
    all_profiles = [_profile(types, profile) for profile in _as_list(profiles or ())]
    if usual:
        all_profiles.insert(0, usual)
    for profile in all_profiles:
        for name, (least, most) in bounds.items():
            if not least <= profile.get(name, least) <= most:
                raise InputError(f"profiles has {profile!r}, but {name} is to be {least} to {most}")
    names_of_model = open_names(types.values())
    for name in (*bounds, *(name for profile in all_profiles for name in profile)):
        if name not in names_of_model:
            names = ", ".join(names_of_model) or "none"
            raise InputError(f"the model has no open size {name!r}; its open sizes are {names}")
    return Sizes.of(bounds, all_profiles, specializations)


def buckets_from(buckets: Mapping[str, Sequence[int]] | None) -> Buckets:
    """Return the sizes to pad to, in ascending order.

    Raises:
        InputError: the argument is malformed.
    """
    sorted_buckets: dict[str, Sequence[int]] = {}
    for name, sizes in _items("buckets", buckets or {}, "{'N': [1, 8, 32]}"):
        is_list = isinstance(sizes, Sequence) and not isinstance(sizes, str)
        if not is_list or not sizes or not all(_is_size(size) and size for size in sizes):
            raise InputError(f"the buckets of size {name!r} are {sizes!r}; give them like [1, 8]")
        sorted_buckets[name] = sorted(set(sizes))
    return sorted_buckets


def _bounds(
    types: Mapping[str, TensorType], name: str, argument: Any
) -> dict[str, tuple[int, ...]]:
    """Return (least, most) or (least, usual, most) of each size in a range."""
    if (
        not isinstance(argument, Sequence)
        or isinstance(argument, str)
        or len(argument) not in (2, 3)
    ):
        raise InputError(f"the range of size {name!r} is {argument!r}; give it like (1, 8)")
    if name in types and all(isinstance(shape, Sequence) for shape in argument):
        each = [_sizes(bind(types, {name: concrete(name, shape)})) for shape in argument]
        bounds = {size: tuple(sizes[size] for sizes in each) for size in each[0]}
    else:
        bounds = {name: tuple(argument)}
    for size, values in bounds.items():
        if not all(map(_is_size, values)) or list(values) != sorted(values):
            raise InputError(f"the range of size {size!r} is {values!r}; give it like (1, 8)")
    return bounds


def _as_list(profiles: Profiles) -> Sequence[Profile]:
    """Return the profiles as a list."""
    if not isinstance(profiles, Mapping):
        if not isinstance(profiles, Sequence) or isinstance(profiles, str):
            raise InputError(f"profiles is {profiles!r}; give sizes by name, like [{{'N': 8}}]")
        return profiles
    counts = {len(shapes) if isinstance(shapes, Sequence) else -1 for shapes in profiles.values()}
    if len(counts) > 1 or -1 in counts:
        raise InputError(
            f"profiles lists {sorted(counts)} shapes for its inputs; give each input one for each "
            f"profile, like {{'x': [[1, 8], [4, 8]]}}"
        )
    for name, shapes in profiles.items():
        wrong = next((shape for shape in shapes if not isinstance(shape, Sequence)), None)
        if wrong is not None:
            raise InputError(
                f"profiles lists {wrong!r} for input {name!r}; list shapes, like [4, 8]"
            )
    return [
        dict(zip(profiles, shapes, strict=True)) for shapes in zip(*profiles.values(), strict=True)
    ]


def _profile(types: Mapping[str, TensorType], profile: Profile) -> dict[str, int]:
    """Return the values of sizes in a profile."""
    sizes: dict[str, int] = {}
    shapes: dict[str, Sequence[int]] = {}
    for name, value in _items("profiles", profile, "[{'N': 8}]"):
        if _is_size(value):
            sizes[name] = value
        elif isinstance(value, Sequence) and not isinstance(value, str) and name in types:
            shapes[name] = concrete(name, value)
        else:
            raise InputError(f"profiles has {profile!r}; give sizes by name, like {{'N': 8}}")
    return _sizes(bind(types, shapes, sizes))


def _items(argument: str, value: Any, like: str) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{argument} has {value!r}; give sizes by name, like {like}")
    return value.items()


def _sizes(sizes: Mapping[str, Dim]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
