"""Networks of Hugging Face's `transformers`, by both of PyTorch's exporters.

They are small, with weights drawn at random from the library's own initialization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from corpus.entry import Input
from corpus.made import maker
from corpus.made._exporting import AXES, Given, example, export

_WORDS = 200
_IDS = Input(low=3, high=_WORDS)
_ONES = Input(value=1)


@dataclass(frozen=True, slots=True)
class Network:
    """A network, its sizes, and what it takes and gives.

    Attributes:
        model: the class in `transformers`.
        config: that of its configuration.
        settings: what the configuration is made from.
        inputs: what it takes, by name.
        outputs: the fields of its result.
        call: further arguments of the call.
        layers: so many layers have keys and values of earlier words among the inputs.
        exporters: those of the two that can.
        transformer: it has attention.
    """

    model: str
    config: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Given]
    outputs: Sequence[str]
    call: Mapping[str, Any] = field(default_factory=dict)
    layers: int = 0
    exporters: Sequence[str] = ("torchscript", "dynamo")
    transformer: bool = True


def _ids(*shape: int | str) -> Given:
    return Given(shape, "int64", _IDS)


def _ones(*shape: int | str) -> Given:
    return Given(shape, "int64", _ONES)


def _reals(*shape: int | str) -> Given:
    return Given(shape, "float32", Input())


_TEXT = {"input_ids": _ids("batch", "sequence"), "attention_mask": _ones("batch", "sequence")}
_PAIR = {**_TEXT, "decoder_input_ids": _ids("batch", "target")}
_PIXELS = {"pixel_values": _reals("batch", 3, 64, 64)}
_SOUND = {"input_values": _reals("batch", "samples")}
_STEP = {
    "input_ids": _ids("batch", "step"),
    "attention_mask": _ones("batch", "total"),
    "position_ids": Given(("batch", "step"), "int64", Input(value=AXES["past"])),
}


def _past(layers: int, heads: int, width: int) -> dict[str, Given]:
    """Keys and values of earlier words."""
    one = _reals("batch", heads, "past", width)
    return {f"past.{i}.{part}": one for i in range(layers) for part in ("key", "value")}


_ENCODER = {
    "vocab_size": _WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}
_DECODER = {**_ENCODER, "num_key_value_heads": 2, "max_position_embeddings": 128}
_GPT2 = {"vocab_size": _WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
_T5 = {
    **{"vocab_size": _WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128},
    **{"num_layers": 2, "num_heads": 4},
}
_BOTH = {
    **{"vocab_size": _WORDS, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4},
    **{"encoder_ffn_dim": 128, "decoder_ffn_dim": 128},
}
_IMAGE = {
    **{"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 128, "image_size": 64, "patch_size": 8},
}
_WAVES = {
    **{"vocab_size": 32, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 128, "conv_dim": [32] * 4, "conv_stride": [5, 2, 2, 2]},
    **{"conv_kernel": [10, 3, 3, 2], "num_feat_extract_layers": 4},
    **{"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
}
_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_UNCACHED = {"use_cache": False}


def _language(
    model: str, settings: Mapping[str, Any] = _DECODER, config: str = "", **own: Any
) -> Network:
    """A decoder that reads a whole text."""
    name = config or f"{model}Config"
    settings = {**settings, **own}
    return Network(f"{model}ForCausalLM", name, settings, _TEXT, ["logits"], _UNCACHED)


NETWORKS: Mapping[str, Network] = {
    "bert": Network(
        "BertForSequenceClassification",
        "BertConfig",
        {**_ENCODER, "hidden_size": 256, "num_hidden_layers": 6, "intermediate_size": 1024},
        {**_TEXT, "token_type_ids": Given(("batch", "sequence"), "int64", Input(high=2))},
        ["logits"],
    ),
    "roberta": Network(
        "RobertaForTokenClassification",
        "RobertaConfig",
        {**_ENCODER, "pad_token_id": 1},
        _TEXT,
        ["logits"],
    ),
    "xlm-roberta-fixed": Network(
        "XLMRobertaModel",
        "XLMRobertaConfig",
        {**_ENCODER, "pad_token_id": 1},
        {"input_ids": _ids(2, 24), "attention_mask": _ones(2, 24)},
        ["last_hidden_state"],
    ),
    "distilbert": Network(
        "DistilBertForQuestionAnswering",
        "DistilBertConfig",
        {
            **{"vocab_size": _WORDS, "dim": 64, "n_layers": 2, "n_heads": 4},
            **{"hidden_dim": 128, "max_position_embeddings": 64},
        },
        _TEXT,
        ["start_logits", "end_logits"],
    ),
    "albert": Network(
        "AlbertModel",
        "AlbertConfig",
        {**_ENCODER, "embedding_size": 32},
        _TEXT,
        ["last_hidden_state", "pooler_output"],
    ),
    "deberta": Network(
        "DebertaV2Model",
        "DebertaV2Config",
        {
            **{**_ENCODER, "relative_attention": True, "position_buckets": 16},
            **{"pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm"},
            **{"share_att_key": True, "position_biased_input": False},
        },
        _TEXT,
        ["last_hidden_state"],
    ),
    "electra": Network(
        "ElectraForMaskedLM",
        "ElectraConfig",
        {**_ENCODER, "embedding_size": 32},
        _TEXT,
        ["logits"],
    ),
    "modernbert": Network(
        "ModernBertModel",
        "ModernBertConfig",
        {**_ENCODER, **_TOKENS, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 16},
        _TEXT,
        ["last_hidden_state"],
    ),
    "layoutlm": Network(
        "LayoutLMForTokenClassification",
        "LayoutLMConfig",
        _ENCODER,
        {**_TEXT, "bbox": Given(("batch", "sequence", 4), "int64", Input(value=500))},
        ["logits"],
    ),
    "gpt2": Network("GPT2LMHeadModel", "GPT2Config", _GPT2, _TEXT, ["logits"], _UNCACHED),
    "llama": _language("Llama"),
    "qwen2": _language("Qwen2"),
    "qwen3": _language("Qwen3", head_dim=16),
    "phi": _language("Phi"),
    "phi3": _language("Phi3", {**_DECODER, **_TOKENS}),
    "mistral": _language("Mistral", sliding_window=16, head_dim=16),
    "gemma": _language("Gemma", head_dim=16),
    "gemma3": _language("Gemma3", config="Gemma3TextConfig", head_dim=16, sliding_window=8),
    "gpt-neox": _language("GPTNeoX", _ENCODER),
    "opt": _language(
        "OPT",
        {
            **{"vocab_size": _WORDS, "hidden_size": 64, "num_hidden_layers": 2},
            **{"num_attention_heads": 4, "ffn_dim": 128, "word_embed_proj_dim": 64},
            **{"max_position_embeddings": 64},
        },
    ),
    "bloom": _language(
        "Bloom", {"vocab_size": _WORDS, "hidden_size": 64, "n_layer": 2, "n_head": 4}
    ),
    "mamba": Network(
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": _WORDS, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2},
        {"input_ids": _ids("batch", 12)},
        ["logits"],
        _UNCACHED,
        transformer=False,
    ),
    "llama-cached": Network(
        "LlamaForCausalLM",
        "LlamaConfig",
        {**_DECODER, "attn_implementation": "eager"},
        {**_STEP, **_past(2, 2, 16)},
        ["logits"],
        layers=2,
    ),
    "gpt2-cached": Network(
        "GPT2LMHeadModel",
        "GPT2Config",
        {**_GPT2, "attn_implementation": "eager"},
        {**_STEP, **_past(2, 4, 16)},
        ["logits"],
        layers=2,
    ),
    "t5-encoder": Network(
        *("T5EncoderModel", "T5Config", _T5, _TEXT, ["last_hidden_state"]),
        exporters=["torchscript"],
    ),
    "t5": Network(
        *("T5ForConditionalGeneration", "T5Config", _T5, _PAIR, ["logits"], _UNCACHED),
        exporters=["torchscript"],
    ),
    "bart": Network(
        "BartForConditionalGeneration",
        "BartConfig",
        {**_BOTH, "max_position_embeddings": 64},
        _PAIR,
        ["logits"],
        _UNCACHED,
    ),
    "whisper": Network(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **{**_BOTH, **_TOKENS, "decoder_start_token_id": 1, "num_mel_bins": 16},
            **{"max_source_positions": 50, "max_target_positions": 32},
        },
        {
            "input_features": _reals("batch", 16, 100),
            "decoder_input_ids": _ids("batch", "target"),
        },
        ["logits"],
        _UNCACHED,
        exporters=["dynamo"],
    ),
    "wav2vec2": Network("Wav2Vec2ForCTC", "Wav2Vec2Config", _WAVES, _SOUND, ["logits"]),
    "vit": Network(
        "ViTForImageClassification",
        "ViTConfig",
        {**_IMAGE, "hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 256},
        _PIXELS,
        ["logits"],
    ),
    "dinov2": Network(
        "Dinov2Model", "Dinov2Config", _IMAGE, _PIXELS, ["last_hidden_state", "pooler_output"]
    ),
    "beit": Network(
        "BeitModel", "BeitConfig", {**_IMAGE, "patch_size": 16}, _PIXELS, ["last_hidden_state"]
    ),
    "swin": Network(
        "SwinForImageClassification",
        "SwinConfig",
        {
            **{"image_size": 64, "patch_size": 2, "embed_dim": 24, "window_size": 4},
            **{"depths": [2, 2], "num_heads": [2, 4]},
        },
        _PIXELS,
        ["logits"],
        exporters=["torchscript"],
    ),
    "convnext": Network(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 2, 1]},
        _PIXELS,
        ["logits"],
        transformer=False,
    ),
    "mobilevit": Network(
        "MobileViTForImageClassification",
        "MobileViTConfig",
        {
            **{"hidden_sizes": [32, 48, 64], "num_attention_heads": 4, "image_size": 64},
            **{"neck_hidden_sizes": [8, 16, 24, 32, 48, 64, 64]},
        },
        _PIXELS,
        ["logits"],
    ),
    "segformer": Network(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            **{"hidden_sizes": [16, 32, 48, 64], "decoder_hidden_size": 32, "num_labels": 5},
            **{"num_attention_heads": [1, 2, 3, 4]},
        },
        {"pixel_values": _reals("batch", 3, "height", "width")},
        ["logits"],
    ),
    "depth-anything": Network(
        "DPTForDepthEstimation",
        "DPTConfig",
        {
            **{**_IMAGE, "hidden_size": 32, "num_hidden_layers": 4, "patch_size": 16},
            **{"backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [16, 16, 32, 32]},
            **{"fusion_hidden_size": 16, "is_hybrid": False},
        },
        _PIXELS,
        ["predicted_depth"],
    ),
    "sam-vision": Network(
        "SamVisionModel",
        "SamVisionConfig",
        {
            **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
            **{"output_channels": 16, "image_size": 64, "patch_size": 8, "window_size": 3},
            **{"global_attn_indexes": [1], "mlp_dim": 64},
        },
        _PIXELS,
        ["last_hidden_state"],
    ),
    "yolos": Network(
        "YolosForObjectDetection",
        "YolosConfig",
        {**_IMAGE, "image_size": [64, 64], "patch_size": 16, "num_detection_tokens": 10},
        _PIXELS,
        ["logits", "pred_boxes"],
    ),
    "detr": Network(
        "DetrForObjectDetection",
        "DetrConfig",
        {
            "backbone_config": {
                **{"model_type": "resnet", "embedding_size": 16, "layer_type": "basic"},
                **{"hidden_sizes": [16, 32, 32, 48], "depths": [1, 1, 1, 1]},
                **{"out_features": ["stage4"]},
            },
            **{"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None},
            **{"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 10},
            **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_labels": 5},
            **{"encoder_ffn_dim": 128, "decoder_ffn_dim": 128},
        },
        {"pixel_values": _reals("batch", 3, 96, 96)},
        ["logits", "pred_boxes"],
    ),
    "clip": Network(
        "CLIPModel",
        "CLIPConfig",
        {
            "text_config": {**_ENCODER, "max_position_embeddings": 32, "eos_token_id": 2},
            "vision_config": {**_IMAGE, "patch_size": 16},
            "projection_dim": 32,
        },
        {**_TEXT, **_PIXELS},
        ["logits_per_image", "text_embeds"],
    ),
    "patchtst": Network(
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        {
            **{"num_input_channels": 3, "context_length": 64, "patch_length": 8},
            **{"patch_stride": 8, "prediction_length": 16, "d_model": 32, "ffn_dim": 64},
            **{"num_hidden_layers": 2, "num_attention_heads": 4},
        },
        {"past_values": _reals("batch", 64, 3)},
        ["prediction_outputs"],
        exporters=["dynamo"],
    ),
}


def write(name: str, exporter: str, path: Path) -> None:
    """Export one of the networks."""
    write_network(NETWORKS[name], exporter, path)


def write_network(network: Network, exporter: str, path: Path) -> None:
    """Export a network."""
    import torch
    import transformers

    torch.manual_seed(7)
    config = getattr(transformers, network.config)(**network.settings)
    module = _flat(getattr(transformers, network.model)(config).eval(), network)
    made = [f"present.{i}.{part}" for i in range(network.layers) for part in ("key", "value")]
    export(module, network.inputs, [*network.outputs, *made], exporter, path)


def arrays(name: str) -> Mapping[str, Any]:
    """Inputs of one of the networks, as NumPy arrays."""
    return {key: example(key, given) for key, given in NETWORKS[name].inputs.items()}


def _flat(model: Any, network: Network) -> Any:
    """A module that takes tensors and gives tensors, in the order of the network's."""
    import torch
    import transformers

    own = [name for name in network.inputs if not name.startswith("past.")]

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> Any:
            given = dict(zip(own, tensors, strict=False))
            if not network.layers:
                result = self.model(**given, **network.call, return_dict=True)
                return tuple(result[output] for output in network.outputs)
            past = transformers.DynamicCache()
            for layer in range(network.layers):
                keys, values = tensors[len(own) + 2 * layer :][:2]
                past.update(keys, values, layer)
            result = self.model(**given, past_key_values=past, use_cache=True, return_dict=True)
            made = [part for layer in past.layers for part in (layer.keys, layer.values)]
            return (*(result[output] for output in network.outputs), *made)

    return Flat().eval()


def _register(name: str, network: Network, exporter: str) -> None:
    calls = {
        "torchscript": "torch.onnx.export(dynamo=False)",
        "dynamo": "torch.onnx.export(dynamo=True)",
    }
    make: Callable[[Path], None] = partial(write, name, exporter)
    maker(
        f"{name}-{exporter}",
        family=network.model,
        origin=f"transformers, {calls[exporter]}",
        transformer=network.transformer,
        axes=AXES,
        inputs={key: given.rule for key, given in network.inputs.items()},
    )(make)


for _name, _network in NETWORKS.items():
    for _exporter in _network.exporters:
        _register(_name, _network, _exporter)
