"""Models that ONNX Runtime's own tools quantize."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corpus.made import _sources, maker
from corpus.made._exporting import AXES

_SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}

STATIC: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "qdq-u8s8": ("QDQ", "QUInt8", "QInt8", {}),
    "qdq-u8s8-channels": ("QDQ", "QUInt8", "QInt8", {"per_channel": True}),
    "qdq-s8s8": ("QDQ", "QInt8", "QInt8", {}),
    "qdq-s8s8-symmetric": (
        *("QDQ", "QInt8", "QInt8"),
        {"per_channel": True, "extra_options": _SYMMETRIC},
    ),
    "qdq-u8u8": ("QDQ", "QUInt8", "QUInt8", {}),
    "qdq-u16s8": ("QDQ", "QUInt16", "QInt8", {}),
    "qdq-s16s16": ("QDQ", "QInt16", "QInt16", {}),
    "qdq-contributed": (
        *("QDQ", "QUInt8", "QInt8"),
        {"extra_options": {"UseQDQContribOps": True}},
    ),
    "qdq-s4": ("QDQ", "QUInt8", "QInt4", {"per_channel": True}),
    "qoperator": ("QOperator", "QUInt8", "QInt8", {}),
    "qoperator-u8u8-channels": ("QOperator", "QUInt8", "QUInt8", {"per_channel": True}),
    "qoperator-s8s8": ("QOperator", "QInt8", "QInt8", {}),
}
"""The format, the types of activations and weights, and further options."""

STATICALLY = [
    *(("resnet", form) for form in STATIC),
    *(("mobilenet", form) for form in ("qdq-u8s8-channels", "qdq-s8s8", "qoperator")),
    *(("unet", form) for form in ("qdq-u8s8-channels", "qoperator")),
    *(("vit", "qdq-u8s8-channels"), ("swin", "qdq-u8s8"), ("gpt2", "qdq-u8s8")),
    *(("distilbert", "qdq-u8s8"), ("roberta", "qdq-s8s8-symmetric"), ("roberta", "qoperator")),
    *(("tcn", "qdq-s8s8"), ("lstm", "qdq-u8s8")),
]

DYNAMICALLY: Mapping[str, Mapping[str, Any]] = {
    "bert": {},
    "gpt2": {"per_channel": True, "weight_type": "QInt8"},
    "llama-cached": {"weight_type": "QUInt8"},
    "lstm": {},
    "t5": {"weight_type": "QInt8", "reduce_range": True},
    "resnet": {},
    "vit": {"extra_options": {"MatMulConstBOnly": True}},
}

BY_BLOCK: Sequence[tuple[str, str, int, str, Mapping[str, Any]]] = [
    ("llama-cached", "nbits4", 4, "QOperator", {"block_size": 32, "is_symmetric": True}),
    (
        *("bert", "nbits4-asymmetric", 4, "QOperator"),
        {"block_size": 32, "is_symmetric": False, "accuracy_level": 4},
    ),
    (
        *("gpt2", "nbits4-by-16", 4, "QOperator"),
        {"block_size": 16, "is_symmetric": True, "accuracy_level": 1},
    ),
    (
        *("qwen2", "nbits4-words", 4, "QOperator"),
        {
            **{"block_size": 32, "is_symmetric": False},
            "op_types_to_quantize": ("MatMul", "Gather"),
        },
    ),
    ("llama", "blocks4-qdq", 4, "QDQ", {"block_size": 32, "is_symmetric": True}),
    ("phi", "blocks4-qdq-asymmetric", 4, "QDQ", {"block_size": 16, "is_symmetric": False}),
    ("mistral", "nbits8", 8, "QOperator", {"block_size": 32, "is_symmetric": True}),
    (
        *("qwen3", "nbits8-asymmetric", 8, "QOperator"),
        {"block_size": 32, "is_symmetric": False, "accuracy_level": 4},
    ),
    ("bart", "nbits2", 2, "QOperator", {"block_size": 32, "is_symmetric": False}),
]


def _prepared(name: str, folder: Path) -> Path:
    """A float model as the tools ask for it: optimized, with all shapes inferred."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source, prepared = folder / "float.onnx", folder / "prepared.onnx"
    _sources.write(name, source)
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    return prepared


def _samples(name: str) -> Iterator[Mapping[str, np.ndarray]]:
    """Inputs to calibrate with."""
    own = _sources.arrays(name)
    for seed in range(6):
        random = np.random.default_rng(seed)
        yield {
            key: random.standard_normal(array.shape).astype(array.dtype)
            if array.dtype.kind == "f"
            else array
            for key, array in own.items()
        }


def quantize_statically(name: str, form: str, path: Path) -> None:
    """Quantize a network with scales found beforehand."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._samples = _samples(name)

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return next(self._samples, None)

    format_, activations, weights, options = STATIC[form]
    with tempfile.TemporaryDirectory() as folder:
        quantize_static(
            *(str(_prepared(name, Path(folder))), str(path), Reader()),
            quant_format=QuantFormat[format_],
            activation_type=QuantType[activations],
            weight_type=QuantType[weights],
            **options,
        )


def quantize_dynamically(name: str, path: Path) -> None:
    """Quantize a network whose activations get their scales in each run."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    options = dict(DYNAMICALLY[name])
    options["weight_type"] = QuantType[options.get("weight_type", "QInt8")]
    with tempfile.TemporaryDirectory() as folder:
        quantize_dynamic(str(_prepared(name, Path(folder))), str(path), **options)


def quantize_by_block(
    name: str, bits: int, format_: str, options: Mapping[str, Any], path: Path
) -> None:
    """Quantize the weights of a network, a scale for each few of them.

    Where the operators must be newer for it, the quantizer says that they are and leaves them as
    they were; only what the newer exporter writes stays valid.
    """
    import onnx
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    source = path.with_name("float.onnx")
    renewed = format_ == "QDQ" or "Gather" in options.get("op_types_to_quantize", ())
    _sources.write(name, source, "dynamo" if renewed else "torchscript")
    model = onnx.load(source)
    source.unlink()
    quantizer = MatMulNBitsQuantizer(model, bits=bits, quant_format=QuantFormat[format_], **options)
    quantizer.process()
    quantizer.model.save_model_to_file(str(path), False)


_TOOLS = "onnxruntime.quantization"

for _name, _form in STATICALLY:
    maker(
        f"{_name}-{_form}",
        origin=f"{_TOOLS}.quantize_static, {_form}",
        quantized=True,
        axes=AXES,
        unstable="a sum that is rounded the other way is off by a quantization step from there on",
        **_sources.described(_name),
    )(partial(quantize_statically, _name, _form))

for _name in DYNAMICALLY:
    maker(
        f"{_name}-dynamic",
        origin=f"{_TOOLS}.quantize_dynamic",
        quantized=True,
        axes=AXES,
        unstable="what is rounded the other way is off by a quantization step from there on",
        **_sources.described(_name),
    )(partial(quantize_dynamically, _name))

for _name, _form, _bits, _format, _options in BY_BLOCK:
    maker(
        f"{_name}-{_form}",
        origin=f"{_TOOLS}, MatMulNBitsQuantizer of {_bits} bits, {_format}",
        quantized=True,
        axes=AXES,
        **_sources.described(_name),
    )(partial(quantize_by_block, _name, _bits, _format, _options))
