"""Formats that no importer reads, each with instructions to convert it to one that is read.

A format is recognized by the file's content or by the name of the object's class, so that no
framework is imported. Error messages and a page of the documentation are generated from this table.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_regular

_HEAD_BYTES = 512
_TAIL_BYTES = 2**20
"""The number of bytes at the end of a ZIP file that are searched for the members' names."""

_ZIP = b"PK\x03\x04"
_EXPORTED_PROGRAM = b"/archive_format"
"""The name of a member of PyTorch's `.pt2` files, which hold other archives."""

_PYTORCH_EXPORT = 'torch.onnx.export(model.eval(), (example,), "model.onnx", dynamo=True)'
_TF2ONNX = "pip install tf2onnx && python -m tf2onnx.convert"


@dataclass(frozen=True, slots=True)
class _Content:
    """Parts of a file that identify its format.

    Attributes:
        suffix: the end of the file name, in lower case, with the dot; empty for content in memory.
        head: the first bytes.
        tail: the last bytes of a ZIP file, which list its members; empty for other files.
    """

    suffix: str
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Format:
    """A format that no importer reads.

    Attributes:
        name: the noun phrase for messages.
        files: typical file names, for the documentation; empty if the format has no files.
        reason: why the format is not read; empty if there is simply no importer.
        conversion: the command or Python code that converts the model to a format that is read;
            `MODEL` stands for the file or folder. Empty if there is no conversion.
        advice: the alternative if there is no conversion, or the requirements of the conversion.
        classes: the classes of such models in memory, as top-level module and class name.
        matches: returns whether a file has this format.
        members: file name patterns; a folder with a match of one of them has this format.
    """

    name: str
    files: str = ""
    reason: str = ""
    conversion: str = ""
    advice: str = ""
    classes: frozenset[tuple[str, str]] = frozenset()
    matches: Callable[[_Content], bool] = lambda _: False
    members: tuple[str, ...] = ()

    def sentence(self, model: str = "MODEL") -> str:
        """Return the end of an error message: the format and what to do.

        Args:
            model: the path to write into the conversion.
        """
        parts = [f"is {self.name}, which crosschip does not read"]
        if self.reason:
            parts.append(self.reason)
        if self.advice:
            parts.append(self.advice)
        if self.conversion:
            parts.append(f"convert it: {self.conversion.replace('MODEL', model)}")
        return "; ".join(parts)


def _starting(magic: bytes, offset: int = 0) -> Callable[[_Content], bool]:
    """Return a test whether a file has `magic` at `offset`."""
    return lambda content: content.head[offset : offset + len(magic)] == magic


def _is_safetensors(content: _Content) -> bool:
    return len(content.head) > 9 and content.head[6:9] == b"\0\0{" and content.head[9:10] == b'"'


FORMATS = (
    Format(
        "a TensorFlow SavedModel",
        "a folder with `saved_model.pb`",
        conversion=f"{_TF2ONNX} --saved-model MODEL --output model.onnx",
        members=("saved_model.pb",),
    ),
    Format(
        "a Keras model",
        "`.keras`, `.h5`",
        advice="load it in Python with KERAS_BACKEND=torch in the environment; `example` is a "
        "tensor like its input",
        conversion='crosschip.load(keras.models.load_model("MODEL"), example_inputs=(example,))',
        matches=lambda content: (
            b"model.weights.h5" in content.tail or content.head.startswith(b"\x89HDF\r\n\x1a\n")
        ),
    ),
    Format(
        "a Keras model in memory, with another backend than PyTorch",
        conversion='model.export("model.onnx", format="onnx")',
        classes=frozenset({("keras", "Model"), ("tf_keras", "Model"), ("tensorflow", "Model")}),
    ),
    Format(
        "a function of JAX",
        advice="pip install jax2onnx; the list has the shape of each argument, with names for "
        "dynamic sizes",
        conversion='crosschip.load(jax2onnx.to_onnx(function, [("batch", 4)]))',
        classes=frozenset(
            {("jaxlib", "PjitFunction"), ("jax", "Exported"), ("flax", "Module")},
        ),
    ),
    Format(
        "a StableHLO module, as JAX and PyTorch/XLA write it",
        "`.mlir`, `.mlirbc`, `.stablehlo`",
        advice="give the ONNX model of the function that it was made from, in JAX like this",
        conversion='onnx.save(jax2onnx.to_onnx(function, [("batch", 4)]), "model.onnx")',
        matches=lambda content: (
            content.head.startswith(b"ML\xefR") or b"stablehlo." in content.head
        ),
    ),
    Format(
        "a TorchScript module",
        "`.pt`, `.jit`",
        conversion='torch.onnx.export(torch.jit.load("MODEL").eval(), (example,), "model.onnx", '
        "dynamo=False)",
        advice="`example` is a tensor like its input",
        matches=lambda content: b"/constants.pkl" in content.tail,
    ),
    Format(
        "a TorchScript module in memory",
        conversion='torch.onnx.export(model.eval(), (example,), "model.onnx", dynamo=False)',
        advice="`example` is a tensor like its input",
        classes=frozenset({("torch", "ScriptModule"), ("torch", "ScriptFunction")}),
    ),
    Format(
        "a checkpoint of PyTorch",
        "`.pt`, `.pth`, `.bin`",
        reason="it holds weights and no network",
        advice="build the network in PyTorch and load them into it",
        conversion=_PYTORCH_EXPORT,
        matches=lambda content: (
            b"/data.pkl" in content.tail
            or (content.suffix in (".pt", ".pth", ".bin") and content.head[:1] == b"\x80")
        ),
    ),
    Format(
        "a file of weights in the safetensors format",
        "`.safetensors`, and a folder of Hugging Face's",
        reason="it holds weights and no network",
        advice="export the folder that it is in, with its config.json",
        conversion="pip install optimum-onnx && optimum-cli export onnx --model FOLDER exported",
        matches=_is_safetensors,
        members=("*.safetensors", "pytorch_model*.bin"),
    ),
    Format(
        "a GGUF model",
        "`.gguf`",
        advice="export the model that it was made from, by its name or folder",
        conversion="pip install optimum-onnx && optimum-cli export onnx --model FOLDER exported",
        matches=_starting(b"GGUF"),
    ),
    Format(
        "a model in ONNX Runtime's own format",
        "`.ort`",
        advice="give the .onnx file that it was made from, or have ONNX Runtime write one",
        conversion='python -c "import onnxruntime as r; o = r.SessionOptions(); '
        "o.optimized_model_filepath = 'model.onnx'; "
        "o.graph_optimization_level = r.GraphOptimizationLevel.ORT_DISABLE_ALL; "
        "o.add_session_config_entry('session.save_model_format', 'ONNX'); "
        "r.InferenceSession('MODEL', o)\"",
        matches=_starting(b"ORTM", 4),
    ),
    Format(
        "a session of ONNX Runtime",
        advice="give the .onnx file or the bytes that it was made from",
        classes=frozenset({("onnxruntime", "InferenceSession")}),
    ),
    Format(
        "a model in OpenVINO's own format (IR)",
        "`.xml` with `.bin`",
        advice="give the ONNX or Paddle file that it was made from",
        matches=lambda content: content.head.startswith(b"<?xml") and b"<net " in content.head,
    ),
    Format(
        "a model of OpenVINO in memory",
        advice="give the ONNX or Paddle file that it was made from",
        classes=frozenset({("openvino", "Model"), ("openvino", "CompiledModel")}),
    ),
    Format(
        "a Core ML model",
        "`.mlmodel`, a folder `.mlpackage`",
        advice="export the model that it was made from, in PyTorch like this",
        conversion=_PYTORCH_EXPORT,
        matches=lambda content: content.suffix == ".mlmodel",
        members=("Data/com.apple.CoreML",),
    ),
    Format(
        "a model of MindSpore",
        "`.ms`, `.mindir`",
        advice="export the network that it was made from, in MindSpore like this; `example` is a "
        "tensor like its input",
        conversion='mindspore.export(network, example, file_name="model", file_format="ONNX")',
        matches=lambda content: content.head[4:7] == b"MSL" or content.suffix in (".ms", ".mindir"),
    ),
    Format(
        "a file of Paddle parameters",
        "`.pdiparams`, `.pdparams`",
        reason="it holds weights and no network",
        advice="give the .pdmodel or the .json beside it; from weights alone, save the network "
        "in Paddle",
        conversion='paddle.jit.save(layer, "inference", input_spec=[...])',
        matches=lambda content: content.suffix in (".pdiparams", ".pdparams"),
    ),
    Format(
        "a layer of Paddle",
        conversion='paddle.jit.save(layer, "inference", input_spec=[...])',
        classes=frozenset({("paddle", "Layer")}),
    ),
    Format(
        "an estimator of scikit-learn",
        conversion='crosschip.load(skl2onnx.to_onnx(estimator, X[:1].astype("float32")))',
        classes=frozenset({("sklearn", "BaseEstimator")}),
    ),
)
"""All recognized formats; the first match counts."""


def format_of_file(source: Path | bytes) -> Format | None:
    """Return the format of a file, folder or content; `None` if it is not in the table."""
    if isinstance(source, Path) and source.is_dir():
        return next(
            (candidate for candidate in FORMATS if _has_member(source, candidate.members)), None
        )
    content = _content(source)
    if _EXPORTED_PROGRAM in content.tail:  # whose importer has said what is wrong
        return None
    return next((candidate for candidate in FORMATS if candidate.matches(content)), None)


def format_of_object(source: object) -> Format | None:
    """Return the format of an object by its class and base classes; `None` if not in the table."""
    for each_class in type(source).__mro__:
        key = each_class.__module__.partition(".")[0], each_class.__qualname__
        if key in _BY_CLASS:
            return _BY_CLASS[key]
    return None


def error_sentence(source: Path | bytes) -> str | None:
    """Return the message for a file that no importer reads; `None` if its format is unknown."""
    foreign_format = format_of_file(source)
    if foreign_format is None:
        return None
    return foreign_format.sentence(
        shlex.quote(str(source)) if isinstance(source, Path) else "MODEL"
    )


_BY_CLASS: Mapping[tuple[str, str], Format] = {
    key: each for each in FORMATS for key in each.classes
}


def _content(source: Path | bytes) -> _Content:
    if isinstance(source, bytes):
        head, tail, suffix = source[:_HEAD_BYTES], source[-_TAIL_BYTES:], ""
    else:
        suffix = source.suffix.lower()
        try:
            with open_regular(source) as file:
                head = file.read(_HEAD_BYTES)
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                tail = file.read(_TAIL_BYTES)
        except OSError:
            head = tail = b""
    return _Content(suffix, head, tail if head.startswith(_ZIP) else b"")


def _has_member(folder: Path, members: tuple[str, ...]) -> bool:
    try:
        return any(next(folder.glob(member), None) is not None for member in members)
    except OSError:
        return False
