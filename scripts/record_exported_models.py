"""Records tiny models as PyTorch's exporters write them, for tests that do without PyTorch.

    build/corpus/venv/bin/python scripts/record_exported_models.py

writes those of `tests/importers/onnx/exported`, in the environment of `corpus/requirements.txt`.
They are networks of `corpus.made.hugging_face` with fewer and narrower layers, as exported, but
for what the newer exporter notes of each node's origin.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from corpus.made.hugging_face import NETWORKS, write_network  # noqa: E402  # from the root

FOLDER = ROOT / "tests" / "importers" / "onnx" / "exported"

_NARROW = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "vocab_size": 200}
KEPT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("bert", "torchscript"): {**_NARROW, "num_attention_heads": 2},
    ("roberta", "dynamo"): {**_NARROW, "num_attention_heads": 2},
    ("gpt2", "torchscript"): {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32},
    ("llama-cached", "dynamo"): {**_NARROW, "head_dim": 16},
    ("swin", "torchscript"): {"embed_dim": 8, "depths": [2], "num_heads": [2]},
}
"""What the networks differ in from those of the corpus."""


def main() -> None:
    """Record every model."""
    import onnx

    FOLDER.mkdir(exist_ok=True)
    for (name, exporter), settings in KEPT.items():
        network = NETWORKS[name]
        layers = min(network.layers, 1)
        inputs = {
            key: given
            for key, given in network.inputs.items()
            if not key.startswith("past.") or int(key.split(".")[1]) < layers
        }
        settings = {**network.settings, **settings}
        path = FOLDER / f"{name}-{exporter}.onnx"
        small = replace(network, settings=settings, inputs=inputs, layers=layers)
        write_network(small, exporter, path)
        model = onnx.load(path)
        for node in model.graph.node:
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
        for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
            value.ClearField("metadata_props")
        onnx.save(model, path)


if __name__ == "__main__":
    main()
