"""Names in generated projects: folders, modules, classes and C variables."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from keyword import iskeyword, issoftkeyword

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")
_MODULES = sys.stdlib_module_names | {
    *("crosschip", "numpy", "ml_dtypes", "msgspec", "onnx", "google", "platformdirs", "rich"),
    *("scipy", "typer", "xxhash", "cffi", "xmlschema", "onnxruntime", "openvino", "jax", "paddle"),
    *("hatchling", "pytest", "tests"),
}
"""The standard library, and modules that crosschip and the projects import."""

_IN_PACKAGES = frozenset({"package"})
"""Names in a project's package other than operator modules."""

_IN_MODULES = frozenset(
    {"Any", "Array", "ElementType", "LIBRARY", "RIGHT", "Sequence", "Shape", "__debug__"}
    | {"annotations", "crosschip", "np", "not_written", "opdef", "package", "pytest", "run"}
    | {"Example", "arrays_for", "convert", "examples_of", "model_of", "test_it_is_right"}
    | {"test_it_runs", "Path", "AssertionError", "NotImplementedError", "list", "tuple", "int"}
    | {"zip", "name", "object", "library", "function", "__all__", "__name__", "__file__", "use"}
    | {
        "compiled",
        "actual",
        "graph",
        "hal",
        "model",
        "op",
        "operand",
        "outputs",
        "expected",
        "uses",
    }
)
"""Names that the generated modules and tests use."""

_WORDS_OF_C = (
    "asm auto break call case char const continue default do double else enum errno extern float "
    "for goto if inline int long main register restrict return short signed sizeof static stderr "
    "stdin stdout struct switch typedef typeof union unsigned void volatile while"
)
_IN_C = frozenset(_WORDS_OF_C.split())


def snake_case(name: str) -> str:
    """Convert a name to snake case, such as `multi_class_nms`."""
    return _WORDS.sub("_", name).lower().strip("_") or "_"


def package_name(title: str) -> str:
    """Return the Python package and folder name for a package's name in documents.

    `_operators` is appended to names of other modules.
    """
    name = snake_case(title)
    if not name[0].isalpha():
        name = f"package_{name.strip('_')}".rstrip("_")
    return f"{name}_operators" if name in _MODULES or iskeyword(name) else name


def module_name(operator: str) -> str:
    """Return the module name for an operator."""
    name = snake_case(operator)
    if not name[0].isalpha():
        name = f"operator_{name.strip('_')}".rstrip("_")
    return f"{name}_" if iskeyword(name) or name in _IN_PACKAGES else name


def class_name(operator: str) -> str:
    """Return the class name for an operator, with an appended `_` if it is reserved."""
    is_reserved = iskeyword(operator) or issoftkeyword(operator) or operator in _IN_MODULES
    return f"{operator}_" if is_reserved else operator


def variable_name(tensor: str, reserved: Collection[str]) -> str:
    """Return a C variable name for a tensor that is not reserved."""
    name = re.sub(r"[^a-z0-9_]+", "", tensor.lower())
    name = f"tensor{name}" if not name.strip("_") or not name.strip("_")[0].isalpha() else name
    name = name.lstrip("_")
    while name in _IN_C or name in reserved:
        name += "_"
    return name


def is_distribution(version: str) -> bool:
    """Return whether pip accepts a version: numbers separated by dots."""
    return re.fullmatch(r"\d+(\.\d+)*", version, re.ASCII) is not None
