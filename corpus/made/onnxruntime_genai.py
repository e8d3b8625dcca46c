"""Language models by the model builder of ONNX Runtime's generative package."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corpus.entry import Input
from corpus.made import maker

_AXES = {"batch_size": 2, "sequence_length": 1, "past_sequence_length": 10}
_TOTAL = 11
_SIZES: Mapping[str, Any] = {
    **{"vocab_size": 200, "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128},
    **{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
}
BUILT: Sequence[tuple[str, Mapping[str, Any], str]] = [
    ("Llama", {}, "fp32"),
    ("Llama", {}, "int4"),
    ("Qwen2", {}, "int4"),
    ("Qwen3", {"head_dim": 16}, "fp32"),
    ("Mistral", {"sliding_window": 8, "head_dim": 16}, "int4"),
    ("Gemma", {"head_dim": 16}, "fp32"),
]


def build(model: str, settings: Mapping[str, Any], precision: str, path: Path) -> None:
    """Write a small language model with its tokenizer, and have it built."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(7)
    architecture = f"{model}ForCausalLM"
    config = getattr(transformers, f"{model}Config")(
        **_SIZES, **settings, architectures=[architecture]
    )
    letters = {chr(ord("a") + place): place for place in range(26)}
    words = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=letters, merges=[]))
    with tempfile.TemporaryDirectory() as folder:
        getattr(transformers, architecture)(config).save_pretrained(folder)
        transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-e", "cpu"]
        places = ["-i", folder, "-m", folder, "-o", str(path.parent), "-c", folder]
        subprocess.run([*builder, *places, "-p", precision], check=True, capture_output=True)


def _inputs(heads: int = 2, width: int = 16) -> dict[str, Input]:
    """One more word after ten."""
    past = Input(shape=(_AXES["batch_size"], heads, _AXES["past_sequence_length"], width))
    return {
        "input_ids": Input(low=3, high=200),
        "attention_mask": Input(shape=(_AXES["batch_size"], _TOTAL), value=1),
        "position_ids": Input(value=_AXES["past_sequence_length"]),
        **{f"past_key_values.{i}.{part}": past for i in range(2) for part in ("key", "value")},
    }


for _model, _settings, _precision in BUILT:
    maker(
        f"{_model.lower()}-genai-{_precision}",
        family=f"{_model}ForCausalLM",
        origin=f"python -m onnxruntime_genai.models.builder -p {_precision} -e cpu",
        transformer=True,
        quantized=_precision == "int4",
        axes=_AXES,
        inputs=_inputs(),
    )(partial(build, _model, _settings, _precision))
