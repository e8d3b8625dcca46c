"""Operators as their definitions make them: slots, rules, types of outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.opdef.custom.documents import LIKE_X, made, package_of, setting, taken
from tests.opdef.strategies import collections

from crosschip import opdef
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Error,
    InputError,
    Model,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import OpDefCollection, Rank
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.definition.operator import Operator

FLOAT32 = ElementType.FLOAT32


class Echo(opdef.CustomOperator):
    """Returns its first input."""

    def reference(self, X: Array, **others: Any) -> Array:
        return X


def defined(
    folder: Path, *tensors: Any, base: type[opdef.CustomOperator] = Echo, **more: Any
) -> type[opdef.CustomOperator]:
    package = package_of(folder, *tensors, **more)

    class Try(base):  # type: ignore[valid-type, misc]
        pass

    return package.defines("Try")(Try)


def use(operator: type[Operator], *shapes: Sequence[Any], **named: Any) -> Operand:
    """Return the first output of a use of an operator on inputs of these shapes."""
    b = Builder("use")
    inputs = [
        b.input(f"x{index}", TensorType(FLOAT32, tuple(shape)))
        for index, shape in enumerate(shapes)
    ]
    return b.add(operator, *inputs, **named)


def test_slots_are_called_as_tensors_are(tmp_path: Path) -> None:
    operator = defined(
        tmp_path,
        taken("in[0]"),
        taken("in[1]", mandatory=False),
        made("out[0]", "shape(out[0]) == shape(in[0])"),
        setting("lambda", default="1"),
        setting("name", default="2"),
        setting("2D", default="3"),
        base=Try0,
    )
    assert [slot.name for slot in operator.slots] == ["in0", "in1", "lambda_", "name_", "_2D"]
    assert operator.tensors["in[0]"] == "in0"
    assert use(operator, (3,)).type == TensorType(FLOAT32, (3,))


class Try0(opdef.CustomOperator):
    def reference(self, in0: Array, in1: Array | None) -> Array:
        return in0


@pytest.mark.parametrize(
    ("parameter", "given_", "read"),
    [
        (setting("p", default="3"), {}, 3),
        (setting("p"), {"p": 7}, 7),
        (setting("p", datatypes=(Datatype.FLOAT_32,), default="0.5"), {}, 0.5),
        (setting("p", datatypes=(Datatype.FLOAT_32,)), {"p": 2}, 2.0),
        (setting("p", datatypes=(Datatype.BOOL_8,), default="1"), {}, True),
        (setting("p", rank=Rank.ONE, default="{1, 2}"), {}, (1, 2)),
        (setting("p", rank=Rank.ONE), {"p": (4, 5, 6)}, (4, 5, 6)),
        (setting("p", datatypes=(Datatype.UINT_8, Datatype.UINT_32)), {"p": 300}, 300),
        (setting("p", datatypes=(Datatype.INT_64,)), {"p": 2**40}, 2**40),
        (setting("p", datatypes=(Datatype.UINT_32,), names=("low", "high")), {"p": "high"}, 1),
        (setting("p", datatypes=(Datatype.UINT_32,), names=("low", "high"), default="low"), {}, 0),
    ],
)
def test_parameters_read_as_values(
    parameter: Any, given_: dict[str, Any], read: object, tmp_path: Path
) -> None:
    operator = defined(tmp_path, taken(), LIKE_X, parameter)
    b = Builder("use")
    b.add(operator, b.input("x", TensorType(FLOAT32, (2,))), **given_)
    assert b.operations[0].p == read  # type: ignore[attr-defined]


def test_a_parameter_of_two_axes_reads_as_an_array(tmp_path: Path) -> None:
    parameter = setting("p", rank=Rank.TWO, default="[[1, 2], [3, 4]]")
    operator = defined(tmp_path, taken(), LIKE_X, parameter)
    b = Builder("use")
    x = b.input("x", TensorType(FLOAT32, (2,)))
    b.add(operator, x)
    b.add(operator, x, p=np.array([[5]], np.int32))
    first, second = (o.p.tolist() for o in b.operations)  # type: ignore[attr-defined]
    assert (first, second) == ([[1, 2], [3, 4]], [[5]])


@pytest.mark.parametrize(
    ("tensors", "shapes", "named", "message"),
    [
        ((taken("X", rank=Rank.TWO),), [(2,)], {}, r"Try\.X: has 1 axes, but its rank is 2D"),
        ((taken("X", "rank(X) >= 2"),), [(2,)], {}, r"X: breaks the constraint 'rank\(X\) >= 2'"),
        ((taken("X", "dim(X, 0) % 4 == 0"),), [(6,)], {}, r"breaks the constraint 'dim\(X, 0\)"),
        ((taken(datatypes=(Datatype.INT_32,)),), [(6,)], {}, r"X: takes int32, not float32"),
        ((taken("X", static=True),), [(6,)], {}, r"X: is a static tensor, so it must be constant"),
        (
            (taken(), setting("p", "0 <= p < rank(X)", default="0")),
            [(6, 6)],
            {"p": 2},
            r"p: breaks the constraint '0 <= p < rank\(X\)'",
        ),
        ((taken(), setting("p")), [(6,)], {}, r"p: is required"),
        ((taken(), setting("p")), [(6,)], {"p": 0.5}, r"p: 0\.5 is not of int32"),
        (
            (taken(), setting("p", datatypes=(Datatype.UINT_32,), names=("a", "b"))),
            [(6,)],
            {"p": "c"},
            r"p: 'c' is not one of a, b",
        ),
    ],
)
def test_a_use_that_breaks_the_definition_is_refused(
    tensors: Any, shapes: Any, named: Any, message: str, tmp_path: Path
) -> None:
    operator = defined(tmp_path, *tensors, LIKE_X)
    with pytest.raises(ModelError, match=message):
        use(operator, *shapes, **named)


def test_an_input_that_is_left_out_has_its_default(tmp_path: Path) -> None:
    class Scaled(opdef.CustomOperator):
        def reference(self, X: Array, scale: Array) -> Array:
            return X * scale

    scale = taken("scale", rank=Rank.ONE, mandatory=False, default="[2]")
    operator = defined(tmp_path, taken(), scale, LIKE_X, base=Scaled)
    assert computed(operator, np.ones(3, np.float32)).tolist() == [2, 2, 2]


def computed(operator: type[Operator], *arrays: Array, **named: Any) -> Array:
    """Return what the reference of an operator makes of arrays."""
    b = Builder("use")
    inputs = [
        b.input(f"x{i}", TensorType(ElementType.of(array.dtype), array.shape))
        for i, array in enumerate(arrays)
    ]
    b.add(operator, *inputs, **named)
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    filled = dict(zip(inputs, arrays, strict=True))
    values = [None if o is None else filled.get(o, o.value) for o in operation.inputs]
    (result, *_) = operation.kernel()(values)
    return result


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([made("Out")], r"Out: its shape does not follow from the definition; add a Constraint"),
        ([made("Out", "dim(Out, 0) == 4")], r"Out: its shape does not follow"),
        (
            [made("Out", "shape(Out) == shape(X)", datatypes=(Datatype.INT_8, Datatype.INT_32))],
            r"Out: its element type does not follow from the definition",
        ),
        (
            [made("Out", "shape(Out) == shape(X)", repeated=True)],
            r"Out: how often it repeats does not follow",
        ),
        ([made("Out", "shape(Out) == shape(Other)"), made("Other", "shape(Other) == shape(Out)")],
         r"Out: its shape does not follow"),
    ],
)  # fmt: skip
def test_what_a_definition_leaves_open_must_be_written(
    outputs: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        defined(tmp_path, taken(), *outputs)


def test_what_a_definition_leaves_open_can_be_written(tmp_path: Path) -> None:
    class Halves(opdef.CustomOperator):
        def infer_shape(self) -> Any:
            rows, *rest = self.X.type.shape
            return [(rows // 2, *rest), (rows - rows // 2, *rest)]

        def infer_element_type(self) -> ElementType:
            return FLOAT32

        def output_count(self) -> int:
            return 2

        def reference(self, X: Array) -> Sequence[Array]:
            return np.split(X, [len(X) // 2])

    both = (Datatype.FLOAT_16, Datatype.FLOAT_32)
    parts = made("parts", datatypes=both, repeated=True)
    operator = defined(tmp_path, taken(), parts, base=Halves)
    rows = symbol("N")
    assert use(operator, (rows, 3)).type.shape == (rows // 2, 3)
    assert computed(operator, np.arange(5, dtype=np.float32)).tolist() == [0, 1]


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.integers(1, 3), st.booleans())
def test_shapes_follow_from_constraints(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], times: int, is_open: bool
) -> None:
    operator = defined(
        tmp_path_factory.mktemp("op"),
        taken("X", rank=Rank.THREE),
        made(
            "Out",
            "dim(Out, 0) == dim(X, 0) * times + 1 and dim(Out, 2) == (dim(X, 0) + dim(X, 2)) // 2",
            "size(X) == dim(X, 0) * dim(Out, 1) * dim(X, 2)",
            "dim(X, 1) == dim(Out, -2)",
            rank=Rank.THREE,
        ),
        made("Numbers", "rank(Numbers) == 1", "dim(Numbers, 0) == dim(Out, 0) - 1"),
        setting("times"),
    )
    sizes = [symbol(f"n{axis}") if is_open else size for axis, size in enumerate(shape)]
    b = Builder("use")
    b.add(operator, b.input("x", TensorType(FLOAT32, tuple(sizes))), times=times)
    values = {f"n{axis}": size for axis, size in enumerate(shape)}
    first, second = (o.type.substitute(values).shape for o in b.operations[0].outputs)
    rows, middle, last = shape
    assert first == (rows * times + 1, middle, (rows + last) // 2)
    assert second == (rows * times,)


def test_an_inference_that_contradicts_the_constraints_is_refused(tmp_path: Path) -> None:
    class Wrong(opdef.CustomOperator):
        def infer_shape(self) -> Any:
            return (7,)

        def reference(self, X: Array) -> Array:
            return X

    operator = defined(tmp_path, taken(), LIKE_X, base=Wrong)
    with pytest.raises(
        ModelError, match=r"Out: breaks the constraint 'shape\(Out\) == shape\(X\)'"
    ):
        use(operator, (3,))


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (lambda self, X: 1 / 0, r"its reference failed: ZeroDivisionError"),
        (lambda self, X: X[:1], r"its reference made float32\[1\] of .*, which is float32\[3\]"),
        (lambda self, X: [X, X], r"its reference makes 2 outputs, not 1"),
        (lambda self, X: None, r"its reference"),
        (lambda self, X: dict[int, Array]()[0], r"its reference failed: KeyError"),
    ],
)
def test_a_reference_that_fails_is_an_error_of_the_operator(
    way: Callable[..., Any], message: str, tmp_path: Path
) -> None:
    base = type("Failing", (opdef.CustomOperator,), {"reference": way})
    operator = defined(tmp_path, taken(), LIKE_X, base=base)
    with pytest.raises((RuntimeError, ValueError), match=message):
        computed(operator, np.ones(3, np.float32))


def test_functions_of_a_package_that_raise_are_errors_of_the_operator(tmp_path: Path) -> None:
    class Failing(opdef.CustomOperator):
        def infer_shape(self) -> Any:
            raise AttributeError("no such thing\nat all")

        def reference(self, X: Array) -> Array:
            return X

    operator = defined(tmp_path, taken(), made("Out"), base=Failing)
    with pytest.raises(ModelError, match=r"inferring failed: AttributeError: no such thing$"):
        use(operator, (3,))


def test_quantized_tensors_are_taken_if_the_definition_says_so(tmp_path: Path) -> None:
    both = (Datatype.FLOAT_32, Datatype.UFIXED_POINT_8)
    same = ("shape(Out) == shape(X)",)
    quantized = TensorType(ElementType.UINT8, (3,), Quantization((0.5,), (3,)))
    for datatypes, fits in ((both, True), ((Datatype.FLOAT_32,), False)):
        operator = defined(tmp_path, taken(datatypes=datatypes), made("Out", *same))
        b = Builder("use")
        x = b.input("x", quantized)
        if fits:
            assert b.add(operator, x).type == TensorType(FLOAT32, (3,))
            (operation,) = b.operations
            (y,) = operation.kernel()([np.array([3, 4, 9], np.uint8)])  # type: ignore[attr-defined]
            assert y.tolist() == [0, 0.5, 3]
        else:
            with pytest.raises(Error, match=r"X: takes float32, not quantized uint8"):
                b.add(operator, x)


def test_constraints_on_elements_hold_in_a_run(tmp_path: Path) -> None:
    operator = defined(tmp_path, taken("X", "X >= 0"), made("Out", "shape(Out) == shape(X)"))
    assert computed(operator, np.zeros(3, np.float32)).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="X: breaks the constraint 'X >= 0'"):
        computed(operator, np.array([1, -1], np.float32))


def test_a_class_must_say_what_it_computes(tmp_path: Path) -> None:
    package = package_of(tmp_path, taken(), LIKE_X)
    with pytest.raises(InputError, match="Nothing defines neither reference nor decompose"):

        @package.defines("Try")
        class Nothing(opdef.CustomOperator):
            pass

    with pytest.raises(InputError, match=r"no operator 'Tri' \(did you mean 'Try'\?\)"):
        package.defines("Tri")
    package.defines("Try")(Echo)
    with pytest.raises(InputError, match="two classes compute 'Try'"):
        package.defines("Try")(Echo)
    with pytest.raises(InputError, match="is not a subclass of"):
        package.defines("Try")(int)  # type: ignore[type-var]


def test_two_inputs_that_repeat_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'A' and 'B' are repeated; one input can be"):
        defined(
            tmp_path,
            taken("A", repeated=True),
            taken("B", repeated=True),
            made("Out", "dim(Out, 0) == 1", rank=Rank.ONE),
        )


def test_an_input_that_repeats_takes_many(tmp_path: Path) -> None:
    class Total(opdef.CustomOperator):
        def reference(self, parts: Sequence[Array], last: Array) -> Array:
            return sum(parts, last)

    operator = defined(
        tmp_path,
        taken("parts", "count(parts) <= 3", "shape(parts) == shape(last)", repeated=True),
        taken("last"),
        made("Out", "shape(Out) == shape(last)"),
        base=Total,
    )
    b = Builder("use")
    each = [b.input(f"x{i}", TensorType(FLOAT32, (2,))) for i in range(4)]
    b.add(operator, each[:2], each[3])
    b.output("y", b.operations[0].outputs[0])
    assert isinstance(b.build(), Model)
    with pytest.raises(ModelError, match=r"parts: breaks the constraint 'count\(parts\) <= 3'"):
        b.add(operator, each, each[3])
    other = b.input("other", TensorType(FLOAT32, (3,)))
    with pytest.raises(ModelError, match="breaks the constraint 'shape"):
        b.add(operator, [other], each[0])


@pytest.mark.parametrize("name", ["reference", "definition", "type", "self", "library", "x²", "ﬁx"])
def test_a_slot_is_an_argument_and_nothing_else(name: str, tmp_path: Path) -> None:
    class Doubled(opdef.CustomOperator):
        def reference(self, **arrays: Array) -> Array:
            (array,) = arrays.values()
            return array * 2

    output = made("out", f"shape(out) == shape('{name}')")
    operator = defined(tmp_path, taken(name), output, base=Doubled)
    (slot,) = operator.slots
    assert slot.name.isidentifier()
    assert slot.name == normalize("NFKC", slot.name)
    array = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(computed(operator, array), [2, 4])


class Anything(opdef.CustomOperator):
    """Makes something of the element types and ranks that its definition has."""

    def infer_shape(self) -> Any:
        return [(1,) * (told.tensor.shape.rank.axes or 1) for told in self.output_rules]

    def infer_element_type(self) -> list[ElementType]:
        first = (min(told.stored, key=lambda s: (s[1], str(s))) for told in self.output_rules)
        return [FLOAT32 if quantized else element_type for element_type, quantized in first]

    def output_count(self) -> int:
        return len(self.results)

    def reference(self, *_: Any, **__: Any) -> list[Array]:
        return [
            np.zeros(o.type.static_shape or (), o.type.element_type.dtype) for o in self.outputs
        ]


@given(collections())
def test_any_definition_is_an_operator_or_refused(collection: OpDefCollection) -> None:
    package = opdef.Package(collection)
    for name in collection.op_defs:
        try:
            operator: type[Anything] = package.defines(name)(type("Any", (Anything,), {}))
        except InputError:
            continue
        assert len(operator.code()) == 64
        for arguments in operator.generated_examples():
            model = model_of(operator, arguments)
            model.verify()
            (operation,) = model.operations
            inputs = arrays_for(arguments)
            named = {o: inputs[n] for n, o in model.inputs.items()}
            assert isinstance(operation, Operator)
            operation.kernel()(
                [None if o is None else named.get(o, o.value) for o in operation.inputs]
            )
