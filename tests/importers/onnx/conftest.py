"""One-node ONNX models, run by the reference device and by ONNX Runtime, the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper
from tests.exact_onnxruntime import exact_session

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.importers import load
from crosschip.ir import Model

Array = NDArray[Any]

IR_VERSION = 8
onnxruntime.set_default_logger_severity(4)


def declared(name: str, array: Array, dynamic: bool) -> ValueInfoProto:
    """Return an input as the array is, with named sizes in place of given ones if dynamic."""
    shape = [f"{name}_{axis}" if dynamic else size for axis, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def one_node(
    op_type: str,
    inputs: Sequence[object],
    opset: int,
    attributes: dict[str, object],
    *,
    outputs: int = 1,
    dynamic: bool = False,
) -> ModelProto:
    """Return a model of one node.

    Args:
        op_type: the ONNX operator.
        inputs: arrays become model inputs, lists, tuples and NumPy's scalars initializers (of
            int64 or float32; an empty list of float32, an empty tuple of int64), and `None` is an
            input left out.
        opset: the version of the operator set.
        attributes: the node's attributes.
        outputs: how many outputs it has.
        dynamic: whether the sizes of the model inputs are left open.
    """
    names = [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)]
    given = [pair for pair in zip(names, inputs, strict=True) if pair[0]]
    made = [f"o{index}" for index in range(outputs)]
    node = helper.make_node(op_type, names, made)
    node.attribute.extend(helper.make_attribute(key, v) for key, v in attributes.items())
    graph = helper.make_graph(
        [node],
        "one_node",
        [declared(name, v, dynamic) for name, v in given if isinstance(v, np.ndarray)],
        [ValueInfoProto(name=name) for name in made],
        [
            numpy_helper.from_array(as_constant(v), name)
            for name, v in given
            if not isinstance(v, np.ndarray)
        ],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION
    )


def as_constant(value: object) -> Array:
    if isinstance(value, np.generic):
        return np.array(value)
    array = np.array(value)
    is_real = array.dtype.kind == "f" and value != ()
    return array.astype(np.float32 if is_real else np.int64)


def run_reference(model: Model, inputs: Iterable[Array]) -> Sequence[Array]:
    model.verify()
    return ReferenceDevice().compile(model, Options()).run(list(inputs))


def run_oracle(file: bytes | str, inputs: Iterable[Array]) -> Sequence[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = exact_session(file, options)
    names = [value.name for value in session.get_inputs()]
    found: Sequence[Array] = session.run(None, dict(zip(names, inputs, strict=True)))
    return found


def assert_close(found: Sequence[Array], wanted: Sequence[Array], relative: float) -> None:
    """Return each output differs by at most so much of the largest absolute value."""
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind == "f":
            scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-30)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=relative * scale)
        else:
            np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def runs() -> Callable[[Path, Sequence[Array]], tuple[Sequence[Array], Sequence[Array]]]:
    """The outputs of the reference device and of the oracle for a model file and inputs."""
    return lambda path, inputs: (run_reference(load(path), inputs), run_oracle(str(path), inputs))


@pytest.fixture
def agree(tmp_path: Path) -> Callable[..., None]:
    """Checks that reference device and oracle agree about a node, in each of some opsets.

    Sizes of inputs are once given and once left open, unless `dynamic` says which. The oracle
    gets the inputs of the numbers `constant_for_oracle` as initializers.
    """

    def check(
        op_type: str,
        *inputs: object,
        opsets: Iterable[int],
        outputs: int = 1,
        dynamic: bool | None = None,
        constant_for_oracle: Sequence[int] = (),
        relative: float = 1e-6,
        **attributes: object,
    ) -> None:
        arrays = [value for value in inputs if isinstance(value, np.ndarray)]
        known = list(inputs)
        for index in constant_for_oracle:
            known[index] = np.asarray(inputs[index]).tolist()
        for opset in opsets:
            for is_dynamic in (False, True) if dynamic is None else (dynamic,):
                proto = one_node(
                    op_type, inputs, opset, attributes, outputs=outputs, dynamic=is_dynamic
                )
                path = tmp_path / f"{op_type}_{opset}.onnx"
                path.write_bytes(proto.SerializeToString())
                found = run_reference(load(path), arrays)
                proto = one_node(op_type, known, opset, attributes, outputs=outputs)
                left = [value for value in known if isinstance(value, np.ndarray)]
                assert_close(found, run_oracle(proto.SerializeToString(), left), relative)

    return check
