"""Values of named sizes, read from shapes in each call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.ir import Dim, ElementType, InputError, TensorType, symbol, unknown
from crosschip.ir.shape_binding import bind
from crosschip.ir.size_reader import ShapeCheck, SizeReader

n, m = symbol("n"), symbol("m")

_SIZES = st.sampled_from([1, 2, 3, n, m, n + 1, 2 * n + m])
_TYPES = st.lists(
    st.none() | st.lists(_SIZES | st.builds(unknown), max_size=3).map(tuple), min_size=1, max_size=4
)
_NUMBERS = st.dictionaries(st.sampled_from(["n", "m"]), st.integers(0, 3), min_size=2)


def _types(shapes: list[tuple[Dim, ...] | None]) -> list[TensorType]:
    return [TensorType(ElementType.FLOAT32, shape) for shape in shapes]


@given(_TYPES, _NUMBERS, st.data())
def test_shapes_agree_where_binding_takes_them(
    declared: list[tuple[Dim, ...] | None], numbers: dict[str, int], data: st.DataObject
) -> None:
    types = _types(declared)
    shapes = []
    for type_ in types:
        known = type_.substitute(dict(numbers)).shape
        sizes = [size if isinstance(size, int) else 4 for size in known or (2, 2)]
        if data.draw(st.integers(0, 5)) == 0:
            sizes = [data.draw(st.integers(0, 4)) for _ in range(data.draw(st.integers(0, 3)))]
        shapes.append(tuple(sizes))
    by_name = {f"x{index}": type_ for index, type_ in enumerate(types)}
    given_ = {f"x{index}": shape for index, shape in enumerate(shapes)}
    found = SizeReader(types).read_checked(shapes)
    try:
        bound = bind(by_name, given_)
    except InputError:
        assert found is None
    else:
        assert found == bound


def test_a_size_that_only_an_expression_shows_is_not_read() -> None:
    reader = SizeReader(_types([(n + 1, 3)]))
    assert reader.read([(5, 3)]) == {}
    assert reader.read_checked([(5, 3)]) == {}
    assert not reader.knows(n)
    assert reader.knows(7)


@pytest.mark.parametrize(
    ("shapes", "fits"),
    [
        ([(4, 6), (5,), (9, 4), (9, 4)], True),
        ([(4, 6), (5,), (9, 4), (8, 4)], True),  # what is called `?` may be anything
        ([(4, 7), (5,), (9, 4), (9, 4)], False),  # twice three is not seven
        ([(4, 6), (4,), (9, 4), (9, 4)], False),
        ([(4, 6), (5,), (9, 3), (9, 4)], False),
        ([(4, 6), (5,), (9, 4), (9, 4, 1)], False),
        ([(4,), (5,), (9, 4), (9, 4)], False),
    ],
)
def test_shapes_are_checked_by_sizes_that_are_known(
    shapes: list[tuple[int, ...]], fits: bool
) -> None:
    reader = SizeReader(_types([(n, m)]))
    open_size = unknown()
    types = _types([(n, 2 * m), (n + 1,), (open_size, n), (open_size, n), None])
    check = ShapeCheck(types, reader)
    assert check.fits([*shapes, (7,)], reader.read([(4, 3)])) is fits


def test_outputs_of_one_shape_are_compared_with_each_other() -> None:
    reader = SizeReader(_types([(n,)]))
    check = ShapeCheck(_types([(n, 2), (n, 2)]), reader)
    assert check.fits([(4, 2), (4, 2)], {"n": 4})
    assert not check.fits([(4, 2), (5, 2)], {"n": 4})


@given(_TYPES, _NUMBERS)
def test_where_sizes_are_complete_shapes_follow_from_those_at_their_places(
    declared: list[tuple[Dim, ...] | None], numbers: dict[str, int]
) -> None:
    types = _types(declared)
    reader = SizeReader(types)
    if not reader.is_complete:
        assert any(
            type_.shape is None or not all(map(reader.knows, type_.shape)) for type_ in types
        )
        return
    shapes = [
        tuple(
            size if isinstance(size, int) else 4
            for size in type_.substitute(dict(numbers)).shape or ()
        )
        for type_ in types
    ]
    sizes = reader.read(shapes)
    assert list(sizes.values()) == [shapes[index][axis] for index, axis in reader.locations]
    assert [type_.substitute(sizes).static_shape for type_ in types] == shapes
