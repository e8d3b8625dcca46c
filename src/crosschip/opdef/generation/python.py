"""The file of an operator in Python."""

from __future__ import annotations

from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.sketches import Sketch
from crosschip.opdef.generation.texts import WIDTH, columns, filled, in_docstring, sentence

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
        description=description(each),
        signature=signature,
        outputs=f"{outputs}\n{_INDENT * 2}" if "\n" in outputs else outputs,
        inference=inference,
        **{"class": each.class_name},
    )
    project.add(f"src/{project.name}/{each.module}.py", f"{text.rstrip()}\n", each.op_def.name)


def imports_of(code: str) -> str:
    """Return the imports of a module whose class has the code."""
    names = [name for name in ("Array", "ElementType", "Shape") if name in code]
    lines = ["from collections.abc import Sequence", ""] if "Sequence[" in code else []
    lines += ["from crosschip import opdef"]
    lines += [f"from crosschip.ir import {', '.join(names)}"] if names else []
    return "\n".join(lines)


def description(each: Sketch) -> str:
    """Return the lines of the docstring of an operator's class."""
    return in_docstring(each.description(WIDTH - 2 * len(_INDENT)), _INDENT)


def _signature(each: Sketch) -> str:
    arguments = ["self", *each.arguments()]
    line = f"{_INDENT}def reference({', '.join(arguments)}) -> {each.returned()}:"
    if columns(line) <= WIDTH:
        return line
    rows = "".join(f"{_INDENT * 2}{argument},\n" for argument in arguments)
    return f"{_INDENT}def reference(\n{rows}{_INDENT}) -> {each.returned()}:"


def _sentence(text: str) -> str:
    """Lines of the docstring of a function in a class, but for the space before the first."""
    return in_docstring(sentence(text, WIDTH - 2 * len(_INDENT) - 6), _INDENT * 2).strip()


def inference_of(each: Sketch) -> str:
    """Stubs of the functions that say of the outputs what the definition leaves open."""
    outputs, slot = each.outputs_in_words(), each.inputs[0][1].name
    several = len(each.op_def.outputs) > 1 or each.op_def.outputs[-1].repeated
    stubs = []
    if not each.shape_is_told:
        hint = f"The definition does not say it. That of an input is `self.{slot}.type.shape`."
        stub = "infer_shape", "list[Shape | None]" if several else "Shape", "The shape of", hint
        stubs.append(stub)
    if not each.type_is_told:
        hint = (
            "The definition does not say it. That of an input is "
            f"`self.{slot}.type.element_type`; of what is quantized, it is float32 here."
        )
        kind = "list[ElementType]" if several else "ElementType"
        stubs.append(("infer_element_type", kind, "The element type of", hint))
    if not each.count_is_told:
        hint = "The definition does not say how often the last of them repeats."
        stubs.append(("output_count", "int", "The number of the outputs", hint))
    return "".join(
        filled(
            "common/inference.py",
            function=function,
            type=kind,
            description=_sentence(f"{description} {outputs}."),
            hint=_sentence(hint),
            **{"class": each.class_name},
        )
        for function, kind, description, hint in stubs
    )
