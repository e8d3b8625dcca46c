"""Compiled models, sessions and errors go to other processes, and come back, pickled."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.modelling import chain

import crosschip
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.drivers.client.connection import Died
from crosschip.hal import CompileError, DeviceLost
from crosschip.hal.device import OutOfRange
from crosschip.ir import DeadlineError, Error, InputError
from crosschip.opdef.problems import Location, OpDefError, Problem
from crosschip.ops.standard.activation import Relu

ENGINES = ["onnxruntime", "openvino", "reference"]
STARTS = ["spawn", "forkserver"]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix product with a bias, of any batch: `y = x w + b`, as a file."""
    random = np.random.default_rng(0)
    constants = [
        onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (8, 4)), ("b", (4,)))
    ]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        constants,
    )
    path = tmp_path_factory.mktemp("pickling") / "network.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path


def accumulator() -> bytes:
    """A model that adds `x` to what it keeps: `present = past + x`, and `y` is that times two."""
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["past", "x"], ["present"]),
            helper.make_node("Add", ["present", "present"], ["y"]),
        ],
        "accumulator",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "past")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("y", "present")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.slow  # processes that import everything anew
@pytest.mark.parametrize("start", STARTS)
def test_processes_run_what_was_compiled_in_another(network: Path, start: str) -> None:
    random = np.random.default_rng(1)
    batches = [random.standard_normal((size, 8)).astype(np.float32) for size in (1, 3)]
    evaluator = ReferenceEvaluator(str(network))
    expected = [np.asarray(evaluator.run(None, {"x": batch})) for batch in batches]
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        for engine in ENGINES:
            with crosschip.compile(network, engine, cache=False) as compiled:
                found = list(processes.map(compiled, batches))
            np.testing.assert_allclose(found[0], expected[0][0], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found[1], expected[1][0], rtol=1e-5, atol=1e-6)


@pytest.mark.slow  # processes that import everything anew
def test_an_error_comes_back_from_a_process(network: Path) -> None:
    context = multiprocessing.get_context("spawn")
    wrong = {"x": np.zeros((1, 7), np.float32)}
    with (
        crosschip.compile(network, "reference", cache=False) as compiled,
        ProcessPoolExecutor(1, mp_context=context) as processes,
    ):
        future = processes.submit(methodcaller("run", wrong), compiled)
        with pytest.raises(InputError, match="7"):
            future.result()


@pytest.mark.parametrize("engine", ENGINES)
def test_settings_survive(network: Path, engine: str) -> None:
    compiled = crosschip.compile(
        network,
        engine,
        shapes={"batch": 2},
        configuration=crosschip.Configuration(in_flight=3, queue_size=7),
        cache=False,
    )
    with compiled, pickle.loads(pickle.dumps(compiled)) as copy:
        assert copy.options == compiled.options
        assert copy.placement.summary() == compiled.placement.summary()
        assert (copy._requests.workers, copy._requests.capacity) == (3, 7)
        x = np.ones((2, 8), np.float32)
        assert copy(x).tolist() == compiled(x).tolist()
        assert copy.submit({"x": x}).result()["y"].tolist() == compiled(x).tolist()


def test_what_was_loaded_is_pickled_again(network: Path) -> None:
    x = np.ones((2, 8), np.float32)
    with crosschip.compile(network, "reference", cache=False) as compiled:
        expected = compiled(x).tolist()
        content = pickle.dumps(pickle.loads(pickle.dumps(compiled)))
    with pickle.loads(content) as copy:
        assert copy(x).tolist() == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_goes_on_where_it_was(engine: str) -> None:
    x = {"x": np.array([1, 10], np.float32)}
    start = {"past": np.array([100, 100], np.float32)}
    compiled = crosschip.compile(accumulator(), engine, cache=False)
    with compiled, compiled.session({"present": "past"}, start) as session:
        before = pickle.loads(pickle.dumps(session))
        session.run(x)
        session.run(x)
        after, model = pickle.loads(pickle.dumps((session, compiled)))
        assert after.state_outputs == session.state_outputs
        assert after.run(x)["y"].tolist() == session.run(x)["y"].tolist() == [206, 260]
        assert before.run(x)["y"].tolist() == [202, 220]
        after.reset()
        assert after.run(x)["y"].tolist() == [202, 220]
        with model.session({"present": "past"}) as other:
            assert other.run(x)["y"].tolist() == [2, 20]


def test_what_has_been_closed_is_not_pickled() -> None:
    compiled = crosschip.compile(accumulator(), "reference", cache=False)
    session = compiled.session({"present": "past"})
    session.close()
    with pytest.raises(InputError, match="session has been closed"):
        pickle.dumps(session)
    compiled.close()
    with pytest.raises(InputError, match="compiled model has been closed"):
        pickle.dumps(compiled)


@pytest.mark.parametrize(
    "error",
    [
        Error("sentence"),
        DeadlineError("sentence"),
        CompileError("sentence", [next(iter(chain(Relu).operations))]),
        DeviceLost("sentence", 2.5, "npu"),
        OutOfRange("sentence"),
        Died("sentence", 4, hangs=True),
        HdiError(ReturnCode.HDF_FAILURE, "sentence"),
        OpDefError([Problem(Location(1, 2, "file"), "sentence")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_with_what_they_tell(error: Error) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
