"""Transformers fused by ONNX Runtime's optimizer, into operators of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from corpus.made import _sources, maker
from corpus.made._exporting import AXES

KINDS: Mapping[str, tuple[str, int, int]] = {
    "bert": ("bert", 4, 256),
    "roberta": ("bert", 4, 64),
    "distilbert": ("bert", 4, 64),
    "electra": ("bert", 4, 64),
    "deberta": ("bert", 4, 64),
    "gpt2": ("gpt2", 4, 64),
    "gpt2-cached": ("gpt2", 4, 64),
    "llama": ("gpt2", 4, 64),
    "t5": ("t5", 4, 64),
    "bart": ("bart", 4, 64),
    "vit": ("vit", 4, 128),
    "swin": ("swin", 0, 0),
    "clip": ("clip", 4, 64),
    "segformer": ("bert", 0, 0),
}
"""The kind of model that the optimizer is told, its heads and its width."""


def fuse(name: str, path: Path) -> None:
    """Fuse a network."""
    from onnxruntime.transformers import optimizer

    source = path.with_name("float.onnx")
    _sources.write(name, source)
    kind, heads, width = KINDS[name]
    fused = optimizer.optimize_model(
        str(source), model_type=kind, num_heads=heads, hidden_size=width, opt_level=0
    )
    fused.save_model_to_file(str(path))
    source.unlink()


for _name, (_kind, _, _) in KINDS.items():
    maker(
        f"{_name}-fused",
        origin=f"onnxruntime.transformers.optimizer, model_type={_kind!r}",
        axes=AXES,
        **_sources.described(_name),
    )(partial(fuse, _name))
