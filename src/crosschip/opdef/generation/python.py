"""The file of an operator in Python."""

from __future__ import annotations

from collections.abc import Iterator

from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.sketches import Sketch
from crosschip.opdef.generation.texts import WIDTH, filled, in_docstring, sentence

_INDENT = " " * 4


def add_operator(project: Project, each: Sketch) -> None:
    """Add the module of an operator, whose class has a stub of the reference."""
    signature, inference = _signature(each), inference_of(each)
    outputs = _sentence(f"The outputs: {each.outputs_in_words()}.")
    text = filled(
        "python/operator.py",
        title=each.op_def.name,
        package_title=project.collection.package_name,
        imports=imports_of(signature + inference),
        package=project.name,
        about=about(each),
        signature=signature,
        outputs=f"{outputs}\n{_INDENT * 2}" if "\n" in outputs else outputs,
        inference=inference,
        **{"class": each.class_name},
    )
    project.add(f"src/{project.name}/{each.module}.py", f"{text.rstrip()}\n", each.op_def.name)


def imports_of(code: str) -> str:
    """The imports of a module whose class has the code."""
    names = [name for name in ("Array", "ElementType", "Shape") if name in code]
    lines = ["from collections.abc import Sequence", ""] if "Sequence[" in code else []
    lines += ["from crosschip import opdef"]
    lines += [f"from crosschip.ir import {', '.join(names)}"] if names else []
    return "\n".join(lines)


def about(each: Sketch) -> str:
    """The lines of the docstring of an operator's class."""
    return in_docstring(each.about(WIDTH - 2 * len(_INDENT)), _INDENT)


def _signature(each: Sketch) -> str:
    arguments = ["self", *each.arguments()]
    line = f"{_INDENT}def reference({', '.join(arguments)}) -> {each.returned('Array')}:"
    if len(line) <= WIDTH:
        return line
    rows = "".join(f"{_INDENT * 2}{argument},\n" for argument in arguments)
    return f"{_INDENT}def reference(\n{rows}{_INDENT}) -> {each.returned('Array')}:"


def _sentence(text: str) -> str:
    """The beginning of the docstring of a function in a class."""
    return in_docstring(sentence(text, WIDTH - 2 * len(_INDENT) - 6), _INDENT * 2).strip()


def inference_of(each: Sketch) -> str:
    """Stubs of the functions that say of the outputs what the definition leaves open."""
    return "".join(_inference(each))


def _inference(each: Sketch) -> Iterator[str]:
    words = {
        "title": each.op_def.name,
        "class": each.class_name,
        "slot": each.inputs[0][1].name,
    }
    outputs = each.outputs_in_words()
    several = len(each.op_def.outputs) > 1 or each.op_def.outputs[-1].repeated
    if not each.shape_is_told:
        shape = "list[Shape | None]" if several else "Shape"
        about = _sentence(f"The shape of {outputs}.")
        yield filled("common/infer_shape.py", type=shape, about=about, **words)
    if not each.type_is_told:
        types = "list[ElementType]" if several else "ElementType"
        about = _sentence(f"The element type of {outputs}.")
        yield filled("common/infer_element_type.py", type=types, about=about, **words)
    if not each.count_is_told:
        yield filled("common/output_count.py", **words)
