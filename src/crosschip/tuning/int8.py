"""The static int8 form of a model, created by ONNX Runtime's quantizer.

Activations become uint8 with a scale per tensor, weights int8 with a scale per channel. In the
quantizer's file each is a pair of QuantizeLinear and DequantizeLinear, which the importer turns
into quantized operands.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from crosschip.devices.kits.onnx.standalone import Dialect, write
from crosschip.importers import load
from crosschip.ir import ElementType, InputError, Model
from crosschip.ir.errors import install_command
from crosschip.tuning.samples import Sample

METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}
"""The calibration methods and the quantizer's names: the range of all values, of all but outliers,
or the range with the least loss of information.
"""

Ranges = Mapping[str, tuple[float, float]]
"""The least and the greatest value of each quantized tensor, by its name in the file."""

_HEAVY = ("Conv", "MatMul", "Gemm")
"""The operators whose arithmetic is quantized."""


def quantizer_version() -> str:
    """Return the version of the quantizer; empty if it is not installed."""
    try:
        return str(import_module("onnxruntime").__version__)
    except ImportError:
        return ""


class Quantizer:
    """A quantizer for one model.

    Raises:
        CompileError: the model has operations that ONNX cannot express.
        InputError: ONNX Runtime's quantizer is not installed.
    """

    def __init__(self, model: Model) -> None:
        try:
            self._tools: Any = import_module("onnxruntime.quantization")
        except ImportError as error:
            raise InputError(
                f"int8 needs ONNX Runtime's quantizer ({error}); {install_command('onnxruntime')}"
            ) from error
        self._model = model
        written = write(model, Dialect(types=frozenset(ElementType)), lambda _: None)
        self._file = written.model.with_constants()
        self._labels = {label: operation.name for label, operation in written.labels.items()}

    @property
    def quantizable(self) -> frozenset[str]:
        """The names of the operations that int8 arithmetic can compute."""
        heavy = [node for node in self._file.graph.node if node.op_type in _HEAVY]
        return frozenset(filter(None, map(self._operation, heavy)))

    def ranges(self, method: str, samples: Sequence[Sample]) -> Ranges:
        """Return the ranges of all tensors over samples.

        Args:
            method: one of `METHODS`.
            samples: inputs of the model.
        """
        how = getattr(self._tools.CalibrationMethod, METHODS[method])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            onnx.save(self._file, path)
            calibrator = import_module("onnxruntime.quantization.calibrate").create_calibrator(
                path, _operators(), Path(folder, "augmented.onnx"), how
            )
            with _suppress_output():
                for sample in samples:  # one by one, since a batch cannot have different sizes
                    calibrator.collect_data(self._reader(sample))
                data_by_name = calibrator.compute_data()
        return {name: _bounds(data) for name, data in data_by_name.items()}

    def quantize(self, ranges: Ranges, exact: Collection[str] = ()) -> Model:
        """Return the model with int8 arithmetic.

        Args:
            ranges: the ranges of the tensors.
            exact: the names of the operations that stay in float32.
        """
        calibrate = import_module("onnxruntime.quantization.calibrate")
        method = self._tools.CalibrationMethod.MinMax
        data = {
            name: calibrate.TensorData(lowest=np.float32(low), highest=np.float32(high))
            for name, (low, high) in ranges.items()
        }
        file = onnx.ModelProto()
        file.CopyFrom(self._file)
        excluded = [node.name for node in file.graph.node if self._operation(node) in exact]
        quantizer = import_module("onnxruntime.quantization.qdq_quantizer").QDQQuantizer(
            file,
            True,  # per channel
            False,  # the whole range of int8
            self._tools.QuantType.QInt8,
            self._tools.QuantType.QUInt8,
            calibrate.TensorsData(method, data),
            [],
            excluded,
            _operators(),
            {},
        )
        with _suppress_output():
            quantizer.quantize_model()
        quantizer.model.topological_sort()
        quantize = load(quantizer.model.model)
        inputs = dict(zip(self._model.inputs, quantize.inputs.values(), strict=True))
        outputs = dict(zip(self._model.outputs, quantize.outputs.values(), strict=True))
        return Model(self._model.name, inputs, quantize.operations, outputs)

    def _operation(self, node: onnx.NodeProto) -> str | None:
        """Return the name of the operation that a node was written for; its name begins with it."""
        return self._labels.get(node.name.partition(".")[0])

    def _reader(self, sample: Sample) -> _Reader:
        named = {
            value.name: np.asarray(sample[name])
            for name, value in zip(self._model.inputs, self._file.graph.input, strict=True)
        }
        return _Reader(iter([named]))


class _Reader:
    """The reader of samples for the quantizer's calibration."""

    def __init__(self, samples: Iterator[Sample]) -> None:
        self._samples = samples

    def get_next(self) -> Sample | None:
        return next(self._samples, None)

    def __iter__(self) -> _Reader:
        return self

    def __next__(self) -> Sample:
        return next(self._samples)


@contextmanager
def _suppress_output() -> Iterator[None]:
    """Suppress the quantizer's prints and its messages to the root logger.

    Without a handler, its first message would add one to the root logger.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_is_not_quantizers)
    try:
        with redirect_stdout(StringIO()):
            yield
    finally:
        root.removeFilter(_is_not_quantizers)
        root.removeHandler(handler)


def _is_not_quantizers(record: logging.LogRecord) -> bool:
    return "onnxruntime" not in Path(record.pathname).parts


def _operators() -> list[str]:
    """Return the ONNX operators that the quantizer supports."""
    return list(import_module("onnxruntime.quantization.registry").QDQRegistry)


def _bounds(data: Any) -> tuple[float, float]:
    low, high = data.range_value
    return float(np.min(low)), float(np.max(high))
