"""Several subgraphs, variables and custom operators, compared with LiteRT or with formulas."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from flatbuffers import flexbuffers
from onnx import helper

import crosschip
from crosschip import ModelFileError, UnsupportedError
from crosschip.ir import Array, InputError

_CODES = schema.BuiltinOperator
_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "int32": schema.TensorType.INT32,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
    "resource": schema.TensorType.RESOURCE,
}

_ZERO_POINT = -10
"""That of all tensors in int8."""


class File:
    """A file that is written subgraph by subgraph."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.model.subgraphs = []

    def subgraph(self) -> None:
        """Begin a subgraph."""
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs.append(self.graph)

    def tensor(self, dtype: str, shape: Sequence[int], value: Array | None = None) -> int:
        """Declare a tensor, with a value if it is a constant; return its index."""
        tensor = schema.TensorT()
        tensor.type, tensor.shape, tensor.buffer = _TYPES[dtype], list(shape), 0
        tensor.name = f"t{len(self.graph.tensors)}"
        if dtype == "int8":
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [0.5], [_ZERO_POINT]
        if value is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(value.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            tensor.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, value: Any, dtype: str) -> int:
        array = np.array(value, dtype)
        return self.tensor(dtype, array.shape, array)

    def add(self, operator: str, inputs: list[int], outputs: list[int], **fields: Any) -> None:
        """Add a builtin operator; `fields` are those of its options, named by `options`."""
        operation = self._add(getattr(_CODES, operator), inputs, outputs)
        name = fields.pop("options", None)
        if name is not None:
            operation.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            operation.builtinOptions = getattr(schema, f"{name}T")()
            for field, value in fields.items():
                setattr(operation.builtinOptions, field, value)

    def add_custom(
        self, name: str, inputs: list[int], outputs: list[int], content: bytes, version: int = 1
    ) -> None:
        operation = self._add(_CODES.CUSTOM, inputs, outputs)
        self.model.operatorCodes[-1].customCode = name
        self.model.operatorCodes[-1].version = version
        operation.customOptions = np.frombuffer(content, np.uint8)

    def _add(self, code: int, inputs: list[int], outputs: list[int]) -> Any:
        operator_code = schema.OperatorCodeT()
        operator_code.builtinCode, operator_code.version = code, 1
        operator_code.deprecatedBuiltinCode = min(code, 127)
        self.model.operatorCodes.append(operator_code)
        operation = schema.OperatorT()
        operation.opcodeIndex = len(self.model.operatorCodes) - 1
        operation.inputs, operation.outputs = inputs, outputs
        self.graph.operators.append(operation)
        return operation

    def interface(self, inputs: list[int], outputs: list[int]) -> None:
        """Set the inputs and the outputs of the subgraph."""
        self.graph.inputs, self.graph.outputs = inputs, outputs

    def content(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def litert(content: bytes) -> Interpreter:
    kernels = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    return interpreter


def expected(interpreter: Interpreter, inputs: Sequence[Array]) -> list[Array]:
    """Return what LiteRT computes."""
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def check(content: bytes, inputs: Sequence[Array], device: str = "reference") -> None:
    """Compare a device with LiteRT."""
    model = crosschip.load(content)
    with crosschip.compile(model, device, cache=False) as compiled:
        results = compiled.run(dict(zip(model.inputs, inputs, strict=True)))
    for wanted, actual in zip(expected(litert(content), inputs), results.values(), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def branches(depth: int = 0) -> bytes:
    """Return a file that adds 2 or multiplies by 3."""
    file = File()
    file.subgraph()
    condition, x, y = (
        file.tensor(*declared)
        for declared in (("bool", [1]), ("float32", [2, 3]), ("float32", [2, 3]))
    )
    file.interface([condition, x], [y])
    indices = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2 + depth}
    file.add("IF", [condition, x], [y], options="IfOptions", **indices)
    for operator, name, value in (("ADD", "AddOptions", 2), ("MUL", "MulOptions", 3)):
        file.subgraph()
        x, y = file.tensor("float32", [2, 3]), file.tensor("float32", [2, 3])
        file.interface([x], [y])
        file.add(operator, [x, file.constant(value, "float32")], [y], options=name)
    return file.content()


def loop() -> bytes:
    """Return a file that doubles numbers until a counter is 5."""
    file = File()
    file.subgraph()
    tensors = [file.tensor(*each) for each in (("int32", [1]), ("float32", [2])) * 2]
    file.interface(tensors[:2], tensors[2:])
    indices = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    file.add("WHILE", tensors[:2], tensors[2:], options="WhileOptions", **indices)
    file.subgraph()
    count, x, goes_on = (
        file.tensor(*each) for each in (("int32", [1]), ("float32", [2]), ("bool", [1]))
    )
    file.interface([count, x], [goes_on])
    file.add("LESS", [count, file.constant([5], "int32")], [goes_on], options="LessOptions")
    file.subgraph()
    tensors = [file.tensor(*each) for each in (("int32", [1]), ("float32", [2])) * 2]
    file.interface(tensors[:2], tensors[2:])
    one = file.constant([1], "int32")
    file.add("ADD", [tensors[0], one], [tensors[2]], options="AddOptions")
    file.add("ADD", [tensors[1], tensors[1]], [tensors[3]], options="AddOptions")
    return file.content()


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("condition", [True, False])
def test_a_condition_selects_a_subgraph(condition: bool, device: str) -> None:
    image = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(branches(), [np.array([condition]), image], device)


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("start", [0, 9])
def test_a_loop_runs_while_its_condition_holds(start: int, device: str) -> None:
    check(loop(), [np.array([start], np.int32), np.array([1, 2], np.float32)], device)


def accumulator(dtype: str = "float32", start: Sequence[int] = (10, 20)) -> bytes:
    """Return a file that adds its input to a variable, which begins with two elements."""
    file = File()
    file.subgraph()
    x, before, after = (file.tensor(dtype, [2]) for _ in range(3))
    file.interface([x], [after])
    file.add("CALL_ONCE", [], [], options="CallOnceOptions", initSubgraphIndex=1)
    variable = add_handle(file)
    file.add("READ_VARIABLE", [variable], [before], options="ReadVariableOptions")
    file.add("ADD", [before, x], [after], options="AddOptions")
    file.add("ASSIGN_VARIABLE", [variable, after], [], options="AssignVariableOptions")
    file.subgraph()
    file.interface([], [])
    first = file.constant(start, dtype)
    file.add("ASSIGN_VARIABLE", [add_handle(file), first], [], options="AssignVariableOptions")
    return file.content()


def test_variables_are_the_state_of_a_session() -> None:
    content, one = accumulator(), np.ones(2, np.float32)
    model = crosschip.load(content)
    assert list(model.inputs) == ["t0", "past.sum", "past.initialized"]
    assert list(model.outputs) == ["t2", "present.sum", "present.initialized"]
    interpreter = litert(content)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        session = compiled.session()
        for _ in range(3):
            (wanted,) = expected(interpreter, [one])
            np.testing.assert_array_equal(session.run({"t0": one})["t2"], wanted)


@pytest.mark.parametrize(("start", "flagged"), [(_ZERO_POINT, False), (0, True)])
def test_quantized_variables_begin_with_their_zero_point(start: int, flagged: bool) -> None:
    content, x = accumulator("int8", (start, start)), np.array([-8, 5], np.int8)
    model = crosschip.load(content)
    assert ("past.initialized" in model.inputs) == flagged
    interpreter = litert(content)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        session = compiled.session()
        for _ in range(3):
            (wanted,) = expected(interpreter, [x])
            np.testing.assert_array_equal(session.run({"t0": x})["t2"], wanted)


def add_handle(file: File) -> int:
    """Append the handle of the variable `sum`."""
    tensor = file.tensor("resource", [])
    names = {"container": "", "sharedName": "sum"}
    file.add("VAR_HANDLE", [], [tensor], options="VarHandleOptions", **names)
    return tensor


def add_to_variable(file: File, handle: int, x: int) -> int:
    """Append the addition of a tensor to a variable; return the sum."""
    before, after = file.tensor("float32", [2]), file.tensor("float32", [2])
    file.add("READ_VARIABLE", [handle], [before], options="ReadVariableOptions")
    file.add("ADD", [before, x], [after], options="AddOptions")
    file.add("ASSIGN_VARIABLE", [handle, after], [], options="AssignVariableOptions")
    return after


def branch_with_variable(passed: bool) -> bytes:
    """Return a file that adds its input to a variable if a condition holds, else returns it.

    Args:
        passed: whether the branches take the handle.
    """
    file = File()
    file.subgraph()
    condition, x = file.tensor("bool", [1]), file.tensor("float32", [2])
    y = file.tensor("float32", [2])
    file.interface([condition, x], [y])
    # A variable exists from its first assignment on.
    file.add("CALL_ONCE", [], [], options="CallOnceOptions", initSubgraphIndex=3)
    handles = [add_handle(file)] if passed else []
    indices = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    file.add("IF", [condition, x, *handles], [y], options="IfOptions", **indices)
    for adds in (True, False):
        file.subgraph()
        x = file.tensor("float32", [2])
        inputs = [x, file.tensor("resource", [])] if passed else [x]
        handle = inputs[1] if passed else add_handle(file)
        y = file.tensor("float32", [2])
        if adds:
            y = add_to_variable(file, handle, x)
        else:
            file.add("READ_VARIABLE", [handle], [y], options="ReadVariableOptions")
        file.interface(inputs, [y])
    file.subgraph()
    file.interface([], [])
    first = file.constant([0, 0], "float32")
    assigned = [add_handle(file), first]
    file.add("ASSIGN_VARIABLE", assigned, [], options="AssignVariableOptions")
    return file.content()


@pytest.mark.parametrize("passed", [False, True])
def test_a_branch_assigns_a_variable(passed: bool) -> None:
    content, x = branch_with_variable(passed), np.array([1, 2], np.float32)
    interpreter, model = litert(content), crosschip.load(content)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        session = compiled.session()
        for condition in (True, False, True, True, False):
            inputs = [np.array([condition]), x]
            (wanted,) = expected(interpreter, inputs)
            (actual,) = session.run(dict(zip(("t0", "t1"), inputs, strict=True))).values()
            np.testing.assert_array_equal(actual, wanted)


def loop_with_variable() -> bytes:
    """Return a file that adds its input to a variable as often as a counter is below 3."""
    file = File()
    file.subgraph()
    tensors = [file.tensor(*each) for each in (("int32", [1]), ("float32", [2])) * 2]
    total = file.tensor("float32", [2])
    file.interface(tensors[:2], [total])
    file.add("CALL_ONCE", [], [], options="CallOnceOptions", initSubgraphIndex=3)
    indices = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    file.add("WHILE", tensors[:2], tensors[2:], options="WhileOptions", **indices)
    file.add("READ_VARIABLE", [add_handle(file)], [total], options="ReadVariableOptions")
    file.subgraph()
    count, x, goes_on = (
        file.tensor(*each) for each in (("int32", [1]), ("float32", [2]), ("bool", [1]))
    )
    file.interface([count, x], [goes_on])
    file.add("LESS", [count, file.constant([3], "int32")], [goes_on], options="LessOptions")
    file.subgraph()
    count, x, following = (
        file.tensor(*each) for each in (("int32", [1]), ("float32", [2]), ("int32", [1]))
    )
    file.add("ADD", [count, file.constant([1], "int32")], [following], options="AddOptions")
    add_to_variable(file, add_handle(file), x)
    file.interface([count, x], [following, x])
    file.subgraph()
    file.interface([], [])
    assigned = [add_handle(file), file.constant([5, 6], "float32")]
    file.add("ASSIGN_VARIABLE", assigned, [], options="AssignVariableOptions")
    return file.content()


@pytest.mark.parametrize("device", ["reference", "onnxruntime"])
def test_a_loop_assigns_a_variable(device: str) -> None:
    content, x = loop_with_variable(), np.array([1, 2], np.float32)
    interpreter, model = litert(content), crosschip.load(content)
    with crosschip.compile(model, device, cache=False) as compiled:
        session = compiled.session()
        for start in (1, 3, 0):
            inputs = [np.array([start], np.int32), x]
            (wanted,) = expected(interpreter, inputs)
            (actual,) = session.run(dict(zip(("t0", "t1"), inputs, strict=True))).values()
            np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("regular", [False, True])
def test_detections_are_those_of_litert(regular: bool) -> None:
    numbers = np.random.default_rng(0)
    file = File()
    file.subgraph()
    boxes, scores = (file.tensor("float32", [1, 20, 4]) for _ in range(2))
    anchors = file.constant(numbers.uniform(0.1, 1, (20, 4)), "float32")
    outputs = [file.tensor("float32", []) for _ in range(4)]
    file.interface([boxes, scores], outputs)
    options: dict[str, Any] = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
    options |= {"nms_iou_threshold": 0.5, "nms_score_threshold": 0.1, "max_detections": 5}
    options |= {"max_classes_per_detection": 1, "num_classes": 3, "use_regular_nms": regular}
    content = bytes(flexbuffers.Dumps(options))
    file.add_custom("TFLite_Detection_PostProcess", [boxes, scores, anchors], outputs, content)
    inputs = [numbers.standard_normal((1, 20, 4)), numbers.random((1, 20, 4))]
    check(file.content(), [each.astype(np.float32) for each in inputs])


def run_custom(
    name: str, inputs: Sequence[Array], content: bytes, constants: Sequence[Array] = ()
) -> Array:
    """Return the output of a file with one custom operator of version 2."""
    file = File()
    file.subgraph()
    tensors = [file.tensor("float32", each.shape) for each in inputs]
    output = file.tensor("float32", [])
    file.interface(tensors, [output])
    parameters = [file.constant(each, "float32") for each in constants]
    file.add_custom(name, [*tensors, *parameters], [output], content, 2)
    model = crosschip.load(file.content())
    with crosschip.compile(model, "reference", cache=False) as compiled:
        outputs = compiled.run(dict(zip(model.inputs, inputs, strict=True)))
    result: Array = next(iter(outputs.values()))
    return result


def affine(linear: Any, shift: Any) -> Array:
    matrix = np.eye(4)
    matrix[:2, :2], matrix[:2, 3] = linear, shift
    return matrix


def rotation(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_landmarks_become_the_matrix_of_their_crop() -> None:
    points = np.random.default_rng(0).standard_normal((1, 10, 3)).astype(np.float32)
    options = {"left_rotation_idx": 1, "right_rotation_idx": 2, "target_rotation_radians": 0.3}
    options |= {"output_height": 16, "output_width": 8, "scale_x": 1.5, "scale_y": 1.25}
    subset = [0, 3, 4, 5, 6, 9]
    content = bytes(flexbuffers.Dumps({**options, "subset_idxs": subset}))
    result = run_custom("Landmarks2TransformMatrix", [points], content)
    plane = points[0, :, :2].astype(np.float64)
    turn = 0.3 - np.arctan2(*(plane[2] - plane[1])[::-1])
    rotated = plane[subset] @ rotation(turn).T
    low, high = rotated.min(axis=0), rotated.max(axis=0)
    matrix = affine(np.eye(2), rotation(-turn) @ ((low + high) / 2)) @ affine(rotation(-turn), 0)
    matrix = matrix @ affine(np.diag((high - low) * [1.5 / 8, 1.25 / 16]), 0)
    np.testing.assert_allclose(result[0], matrix @ affine(np.eye(2), [-4, -8]), atol=1e-5)


def test_landmarks_are_moved_by_a_matrix() -> None:
    numbers = np.random.default_rng(0)
    points = numbers.standard_normal((1, 6, 3)).astype(np.float32)
    matrix = affine(numbers.standard_normal((2, 2)), [0.5, 2]).astype(np.float32)[None]
    result = run_custom("TransformLandmarks", [points, matrix], b"")
    moved = points[0, :, :2] @ matrix[0, :2, :2].T + matrix[0, :2, 3]
    wanted = np.concatenate([moved, points[0, :, 2:]], axis=1)
    np.testing.assert_allclose(result[0], wanted, rtol=1e-5)


def test_an_image_is_sampled_at_the_positions_of_a_matrix() -> None:
    image = np.random.default_rng(0).standard_normal((1, 7, 9, 3)).astype(np.float32)
    linear, shift = np.array([[1.3, 0.4], [-0.3, 1.2]]), np.array([0.7, 1.1])
    matrix = affine(linear, shift).astype(np.float32)[None]
    content = bytes(flexbuffers.Dumps({"output_height": 5, "output_width": 4}))
    result = run_custom("TransformTensorBilinear", [image, matrix], content)
    padded = np.pad(image[0], ((0, 1), (0, 1), (0, 0)))
    for row, column in np.ndindex(5, 4):
        x, y = linear @ [column + 0.5, row + 0.5] + shift - 0.5
        wanted = np.zeros(3)
        if 0 <= x <= 8 and 0 <= y <= 6:
            left, top = int(x), int(y)
            corners = padded[top : top + 2, left : left + 2]
            wanted = np.einsum("i,j,ijc", [1 - y + top, y - top], [1 - x + left, x - left], corners)
        np.testing.assert_allclose(result[0, row, column], wanted, atol=1e-5)


def test_a_transposed_convolution_with_a_bias_has_the_size_of_its_padding() -> None:
    numbers = np.random.default_rng(0)
    image = numbers.standard_normal((1, 3, 4, 5)).astype(np.float32)
    filter = numbers.standard_normal((2, 3, 3, 5)).astype(np.float32)
    bias = numbers.standard_normal(2).astype(np.float32)
    content = struct.pack("<iii", 1, 2, 2)
    result = run_custom("Convolution2DTransposeBias", [image], content, [filter, bias])
    full = np.zeros((7, 9, 2))
    for row, column in np.ndindex(3, 4):
        part = np.einsum("c,ohwc->hwo", image[0, row, column], filter)
        full[2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += part
    # Sizes 3 and 4 are padded by 2 and 1 pixels, of which half, rounded down, are before.
    np.testing.assert_allclose(result[0], full[1:6, 0:8] + bias, atol=1e-4)


@pytest.mark.parametrize("padding", [1, 2])
def test_pooling_with_positions_is_undone(padding: int) -> None:
    image = np.random.default_rng(0).standard_normal((1, 5, 7, 3)).astype(np.float32)
    content = struct.pack("<6i", padding, 2, 2, 2, 2, 0)
    file = File()
    file.subgraph()
    x, largest, positions, restored = (file.tensor("float32", [1, 5, 7, 3]) for _ in range(4))
    file.interface([x], [largest, positions, restored])
    file.add_custom("MaxPoolingWithArgmax2D", [x], [largest, positions], content)
    file.add_custom("MaxUnpooling2D", [largest, positions], [restored], content)
    with crosschip.compile(crosschip.load(file.content()), "reference", cache=False) as compiled:
        actual, numbers, unpooled = compiled.run({"t0": image}).values()
    rows, columns = (3, 4) if padding == 1 else (2, 3)
    padded = np.pad(image, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    wanted = np.zeros((1, 2 * rows, 2 * columns, 3), np.float32)
    for row, column, channel in np.ndindex(rows, columns, 3):
        window = padded[0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, channel]
        number = int(window.argmax())
        assert actual[0, row, column, channel] == window.max()
        assert numbers[0, row, column, channel] == np.float32(number + 0.1)
        position = 2 * row + number // 2, 2 * column + number % 2
        wanted[0, *position, channel] = window.max()
    np.testing.assert_array_equal(unpooled, wanted)


def test_strings_are_refused_by_name() -> None:
    file = File()
    file.subgraph()
    text, output = file.tensor("string", [1]), file.tensor("string", [1])
    file.interface([text], [output])
    file.add("RESHAPE", [text], [output], options="ReshapeOptions", newShape=[1])
    with pytest.raises(UnsupportedError, match="tensor 't0' is of type STRING"):
        crosschip.load(file.content())


def two_signatures() -> bytes:
    """Return a file with the signatures `add` and `multiply`, on constants 2 and 3."""
    file = File()
    file.model.signatureDefs = []
    for index, (key, operator, value) in enumerate((("add", "ADD", 2), ("multiply", "MUL", 3))):
        file.subgraph()
        x, y = file.tensor("float32", [2]), file.tensor("float32", [2])
        file.interface([x], [y])
        constant = file.constant(value, "float32")
        file.add(operator, [x, constant], [y], options=f"{operator.title()}Options")
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = key, index
        signature.inputs, signature.outputs = [schema.TensorMapT()], [schema.TensorMapT()]
        for names, name, tensor in ((signature.inputs, "x", x), (signature.outputs, "y", y)):
            names[0].name, names[0].tensorIndex = name, tensor
        file.model.signatureDefs.append(signature)
    return file.content()


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_a_signature_is_chosen_by_its_name(name: str) -> None:
    content, x = two_signatures(), np.array([1, 4], np.float32)
    model = crosschip.load(content, signature=name)
    assert list(model.inputs) == ["x"]
    interpreter = Interpreter(model_content=content)
    wanted = interpreter.get_signature_runner(name)(x=x)["y"]
    with crosschip.compile(model, "reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], wanted)


def test_a_signature_that_is_missing_is_an_error_with_the_others() -> None:
    with pytest.raises(InputError, match=r"'divide'; the file's signatures: 'add', 'multiply'"):
        crosschip.load(two_signatures(), signature="divide")
    with pytest.raises(InputError, match=r"signature is for \.tflite files"):
        crosschip.load(helper.make_model(helper.make_graph([], "g", [], [])), signature="add")


def test_a_subgraph_that_is_missing_is_named() -> None:
    with pytest.raises(ModelFileError, match=r"operator 0 \(IF 't2'\): there is no subgraph 10"):
        crosschip.load(branches(depth=8))
