"""Random files with one operator, written with LiteRT's own classes, and run by LiteRT."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from random import Random
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from crosschip.ir import Array

CODES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "float64": schema.TensorType.FLOAT64,
    "bfloat16": schema.TensorType.BFLOAT16,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int16": schema.TensorType.INT16,
    "uint16": schema.TensorType.UINT16,
    "int32": schema.TensorType.INT32,
    "uint32": schema.TensorType.UINT32,
    "int64": schema.TensorType.INT64,
    "uint64": schema.TensorType.UINT64,
    "bool": schema.TensorType.BOOL,
}


@dataclass(frozen=True)
class Tensor:
    """An operand of the operator.

    Attributes:
        array: the elements; `None` for an output, whose type is `dtype`.
        dtype: the element type's name.
        constant: whether the file holds the elements.
        scale, zero_point: of the quantization; no scale for none.
        axis: along which several scales run.
        variable: whether it is state, which begins with zeros.
    """

    array: Array | None = None
    dtype: str = "float32"
    constant: bool = False
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    variable: bool = False

    @property
    def fed(self) -> bool:
        """Whether it is an input of the file."""
        return not self.constant and not self.variable

    @property
    def elements(self) -> Array:
        """The elements of an input."""
        assert self.array is not None
        return self.array


@dataclass(frozen=True)
class Case:
    """A file with one operator.

    Attributes:
        operator: its name in the schema; `custom.NAME` for a custom one.
        inputs: the operands; `None` for one that is omitted.
        outputs: their types.
        options: the object of LiteRT's schema.
        version: of the operator.
        optimized: whether LiteRT's reference kernel computes something else than TensorFlow, so
            that the optimized one is the oracle.
        regions: further subgraphs, of which the first has the index 1; one without an operator
            returns its last input.
        custom_options: of a custom operator.
    """

    operator: str
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    options: Any = None
    version: int = 1
    optimized: bool = False
    regions: Sequence[Case] = ()
    custom_options: bytes = b""

    def __str__(self) -> str:
        parts = [
            f"{each.dtype}{list(each.elements.shape)}{'c' * each.constant}" if each else "-"
            for each in self.inputs
        ]
        options = {} if self.options is None else vars(self.options)
        return f"{self.operator} v{self.version} ({', '.join(parts)}) {options}"

    def file(self, *, dynamic: bool = False) -> bytes:
        """Return the content of the file.

        Args:
            dynamic: whether the size of the first axis is unknown, in the inputs that `longer`
                extends.
        """
        model = schema.ModelT()
        model.version = 3
        model.operatorCodes, model.subgraphs = [], []
        model.buffers = [schema.BufferT()]
        for case in (self, *self.regions):
            case.add_subgraph(model, dynamic=dynamic)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def add_subgraph(self, model: Any, *, dynamic: bool) -> None:
        """Add the operator to a model, as a subgraph."""
        graph = schema.SubGraphT()
        graph.name, graph.tensors, graph.operators = "main", [], []
        inputs = [
            -1 if tensor is None else _declare(model, graph, f"in{index}", tensor)
            for index, tensor in enumerate(self.inputs)
        ]
        outputs = [
            _declare(model, graph, f"out{index}", tensor)
            for index, tensor in enumerate(self.outputs)
        ]
        if self.operator:
            graph.operators.append(self._operator(model, inputs, outputs))
        graph.inputs = [
            index
            for index, tensor in zip(inputs, self.inputs, strict=True)
            if tensor is not None and tensor.fed
        ]
        graph.outputs = outputs or inputs[-1:]
        for index in self._extended if dynamic else ():
            tensor = graph.tensors[graph.inputs[index]]
            tensor.shapeSignature = [-1, *tensor.shape[1:]]
        model.subgraphs.append(graph)

    def _operator(self, model: Any, inputs: Sequence[int], outputs: Sequence[int]) -> Any:
        code = schema.OperatorCodeT()
        builtin, _, custom = self.operator.partition(".")
        code.builtinCode = getattr(schema.BuiltinOperator, builtin.upper())
        code.customCode = custom or None
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = self.version
        model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(model.operatorCodes) - 1
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if self.custom_options:
            operator.customOptions = np.frombuffer(self.custom_options, np.uint8)
        if self.options is not None:
            name = type(self.options).__name__.removesuffix("T")
            if hasattr(schema.BuiltinOptions, name):
                operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
                operator.builtinOptions = self.options
            else:
                operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, name)
                operator.builtinOptions2 = self.options
        return operator

    def arrays(self) -> list[Array]:
        """Return what is fed to the inputs of the file."""
        return [each.elements for each in self.inputs if each and each.fed]

    def longer(self) -> list[Array]:
        """Return what is fed with one more row along the first axis of some inputs."""
        arrays = self.arrays()
        for index in self._extended:
            arrays[index] = np.concatenate([arrays[index], arrays[index][:1]])
        return arrays

    @property
    def _extended(self) -> list[int]:
        """The inputs whose first axis has the size of the first input's."""
        arrays = self.arrays()
        rows = [array.shape[:1] for array in arrays]
        return [index for index, each in enumerate(rows) if each and each == rows[0]]


def _declare(model: Any, graph: Any, name: str, tensor: Tensor) -> int:
    declared = schema.TensorT()
    declared.name, declared.type, declared.buffer = name, CODES[tensor.dtype], 0
    declared.shape = [] if tensor.array is None else list(tensor.array.shape)
    declared.hasRank, declared.isVariable = tensor.array is not None, tensor.variable
    if tensor.scale:
        declared.quantization = schema.QuantizationParametersT()
        declared.quantization.scale = list(tensor.scale)
        declared.quantization.zeroPoint = list(tensor.zero_point)
        declared.quantization.quantizedDimension = tensor.axis
    if tensor.constant and tensor.array is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(tensor.array.tobytes(), np.uint8)
        model.buffers.append(buffer)
        declared.buffer = len(model.buffers) - 1
    graph.tensors.append(declared)
    return len(graph.tensors) - 1


class Worker:
    """A process that a call may end, and that then is started again."""

    def __init__(self) -> None:
        self._pool = self._open()

    def map(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what a function of a module returns for each call, with one message for all.

        Args:
            function: the function.
            calls: the arguments of each call.

        Returns:
            The results, and a `ChildProcessError` for each call that ends or blocks the process.
        """
        process = self._pool.submit(os.getpid).result()
        try:
            future = self._pool.submit(_map, function, calls)
            results: list[Any] = future.result(timeout=_SECONDS * len(calls))
        except (BrokenProcessPool, TimeoutError):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            self._pool.shutdown()
            self._pool = self._open()
            if len(calls) == 1:
                return [ChildProcessError(f"{function.__name__} ends or blocks the process")]
            half = len(calls) // 2
            return [*self.map(function, calls[:half]), *self.map(function, calls[half:])]
        return results

    def close(self) -> None:
        self._pool.shutdown()

    def _open(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, get_context("spawn"))


_SECONDS = 60.0
"""The time limit of a call."""


def _map(function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> list[Any]:
    return [function(*arguments) for arguments in calls]


class LiteRT:
    """LiteRT in a process of its own, which some files abort.

    The reference kernels run; where LiteRT has none, the optimized ones.
    """

    def __init__(self) -> None:
        self._worker = Worker()

    def run(self, case: Case, arrays: Sequence[Array] | None = None) -> list[Array] | str:
        """Return the outputs of a file for its arrays or others, or why LiteRT refuses it."""
        return self.run_all([(case, case.arrays() if arrays is None else arrays)])[0]

    def run_all(self, runs: Sequence[tuple[Case, Sequence[Array]]]) -> list[list[Array] | str]:
        """Return the same for several files and their arrays."""
        return self._outputs([(case.file(), arrays, case.optimized) for case, arrays in runs])

    def run_content(self, case: Case, content: bytes) -> list[Array] | str:
        """Return the outputs of another file for a case's arrays, by the same kernels."""
        return self._outputs([(content, case.arrays(), case.optimized)])[0]

    def _outputs(
        self, calls: Sequence[tuple[bytes, Sequence[Array], bool]]
    ) -> list[list[Array] | str]:
        results = self._worker.map(_run, calls)
        return ["aborts" if isinstance(each, ChildProcessError) else each for each in results]

    def close(self) -> None:
        self._worker.close()


def _run(content: bytes, arrays: Sequence[Array], optimized: bool) -> list[Array] | str:
    from ai_edge_litert.interpreter import OpResolverType

    if not optimized:
        result = _run_kernels(content, arrays, OpResolverType.BUILTIN_REF)
        missing = ("Didn't find op", "unresolved custom op")
        if not isinstance(result, str) or not any(each in result for each in missing):
            return result
    return _run_kernels(content, arrays, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def _run_kernels(content: bytes, arrays: Sequence[Array], kernels: Any) -> list[Array] | str:
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels)
        details = interpreter.get_input_details()
        for detail, array in zip(details, arrays, strict=True):
            if array.shape != tuple(detail["shape"]):
                interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(details, arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        details = interpreter.get_output_details()
        return [interpreter.get_tensor(detail["index"]) for detail in details]
    except (RuntimeError, ValueError) as error:
        return str(error)


DrawCase = Callable[["Draw", str], Case]

CASES: dict[str, DrawCase] = {}
"""By operator, what draws a case; `operator_cases` fills it."""


def cases(*operators: str) -> Callable[[DrawCase], DrawCase]:
    """Register a function that draws a case of each of some operators."""

    def register(function: DrawCase) -> DrawCase:
        CASES.update(dict.fromkeys(operators, function))
        return function

    return register


class Draw:
    """Random choices for a case.

    Args:
        seed: determines all choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.numpy = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def shape(self, least: int = 1, most: int = 4, size: int = 5) -> tuple[int, ...]:
        return tuple(self.random.randint(1, size) for _ in range(self.random.randint(least, most)))

    def reals(self, shape: Sequence[int], low: float = -4.0, high: float = 4.0) -> Array:
        return self.numpy.uniform(low, high, shape).astype(np.float32)

    def special(self, shape: Sequence[int], low: float = -4.0, high: float = 4.0) -> Array:
        """Return reals, at times with zeros, infinities and NaN among them."""
        array = self.reals(shape, low, high)
        if array.size and self.chance(0.2):
            for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
                array.reshape(-1)[self.random.randrange(array.size)] = value
        return array

    def integers(self, shape: Sequence[int], dtype: str, low: int = -9, high: int = 9) -> Array:
        least = max(low, int(np.iinfo(dtype).min))
        return self.numpy.integers(least, high + 1, shape).astype(dtype)

    def tensor(self, shape: Sequence[int], dtype: str, *, constant: bool = False) -> Tensor:
        """Return elements of a type; reals may be special."""
        if dtype == "bool":
            return Tensor(self.numpy.integers(0, 2, shape).astype(bool), dtype, constant)
        if dtype.startswith("float"):
            return Tensor(self.special(shape).astype(dtype), dtype, constant)
        return Tensor(self.integers(shape, dtype), dtype, constant)

    def scale(self) -> float:
        return float(np.float32(2.0 ** self.random.uniform(-8, -2)))

    def zero_point(self, dtype: str) -> int:
        if dtype == "int16":
            return 0
        limits = np.iinfo(dtype)
        return (
            self.random.choice([0, limits.min, limits.max, self.random.randint(-9, 9)])
            if (dtype == "int8")
            else self.random.choice([0, 255, 128, self.random.randint(0, 255)])
        )

    def quantized(
        self,
        shape: Sequence[int],
        dtype: str,
        *,
        constant: bool = False,
        like: Tensor | None = None,
    ) -> Tensor:
        limits = np.iinfo(dtype)
        array = self.numpy.integers(limits.min, limits.max + 1, shape).astype(dtype)
        scale = (self.scale(),) if like is None else like.scale
        zero = (self.zero_point(dtype),) if like is None else like.zero_point
        return Tensor(array, dtype, constant, scale, zero)

    def output(self, dtype: str, like: Tensor | None = None) -> Tensor:
        """Return the type of a quantized output."""
        if like is not None:
            return Tensor(None, dtype, scale=like.scale, zero_point=like.zero_point)
        return Tensor(None, dtype, scale=(self.scale(),), zero_point=(self.zero_point(dtype),))

    def axes(self, rank: int) -> list[int]:
        count = self.random.randint(1, rank)
        axes = self.random.sample(range(rank), count)
        return [axis - rank if self.chance(0.3) else axis for axis in axes]


def const(values: Any, dtype: str = "int32") -> Tensor:
    """Return an operand that the file holds."""
    return Tensor(np.array(values, dtype), dtype, constant=True)


def options(name: str, /, **values: Any) -> Any:
    """Return options of LiteRT's schema with some fields set."""
    result = getattr(schema, f"{name}OptionsT")()
    for field_, value in values.items():
        assert hasattr(result, field_), (name, field_)
        setattr(result, field_, value)
    return result
