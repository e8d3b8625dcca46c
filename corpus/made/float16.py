"""Models converted to float16 and bfloat16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corpus.made import _sources, maker
from corpus.made._exporting import AXES

CONVERSIONS: Sequence[tuple[str, str, Mapping[str, Any]]] = [
    ("resnet", "float16", {"keep_io_types": False}),
    ("mobilenet", "float16-inside", {"keep_io_types": True}),
    ("bert", "float16-inside", {"keep_io_types": True}),
    ("gpt2", "float16", {"keep_io_types": False}),
    (
        *("unet", "float16-blocked"),
        {"keep_io_types": True, "op_block_list": ["Resize", "InstanceNormalization", "Sigmoid"]},
    ),
    (
        *("vit", "float16-blocked"),
        {"keep_io_types": True, "op_block_list": ["Softmax", "LayerNormalization", "Pow"]},
    ),
    ("t5", "float16", {"keep_io_types": False}),
    ("llama-cached", "float16-logits", {"keep_io_types": ["logits"]}),
]


def convert(name: str, options: Mapping[str, Any], path: Path) -> None:
    """Convert a network to float16."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    source = path.with_name("float.onnx")
    _sources.write(name, source)
    onnx.save(convert_float_to_float16(onnx.load(source), **options), path)
    source.unlink()


for _name, _form, _options in CONVERSIONS:
    maker(
        f"{_name}-{_form}",
        origin="onnxruntime.transformers.float16.convert_float_to_float16",
        axes=AXES,
        unstable="numbers of 11 bits are rounded after each operation, or after several",
        **_sources.described(_name),
    )(partial(convert, _name, _options))
