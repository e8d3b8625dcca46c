"""Generation of Python modules of operators."""

from __future__ import annotations

from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.sketches import Sketch
from crosschip.opdef.generation.texts import WIDTH, columns, fill_template, in_docstring, sentence

_INDENT = " " * 4


def add_operator(project: Project, sketch: Sketch) -> None:
    """Add an operator's module with a stub of the reference."""
    signature, inference = _signature(sketch), inference_of(sketch)
    outputs = _sentence(f"The outputs: {sketch.outputs_in_words()}.")
    text = fill_template(
        "python/operator.py",
        title=sketch.op_def.name,
        package_title=project.collection.package_name,
        imports=imports_of(signature + inference),
        package=project.name,
        description=description(sketch),
        signature=signature,
        outputs=f"{outputs}\n{_INDENT * 2}" if "\n" in outputs else outputs,
        inference=inference,
        **{"class": sketch.class_name},
    )
    project.add(f"src/{project.name}/{sketch.module}.py", f"{text.rstrip()}\n", sketch.op_def.name)


def imports_of(code: str) -> str:
    """Return the import statements for the code of a class."""
    names = [name for name in ("Array", "ElementType", "Shape") if name in code]
    lines = ["from collections.abc import Sequence", ""] if "Sequence[" in code else []
    lines += ["from crosschip import opdef"]
    lines += [f"from crosschip.ir import {', '.join(names)}"] if names else []
    return "\n".join(lines)


def description(sketch: Sketch) -> str:
    """Return the docstring of an operator's class."""
    return in_docstring(sketch.description(WIDTH - 2 * len(_INDENT)), _INDENT)


def _signature(sketch: Sketch) -> str:
    arguments = ["self", *sketch.arguments()]
    line = f"{_INDENT}def reference({', '.join(arguments)}) -> {sketch.result_annotation()}:"
    if columns(line) <= WIDTH:
        return line
    rows = "".join(f"{_INDENT * 2}{argument},\n" for argument in arguments)
    return f"{_INDENT}def reference(\n{rows}{_INDENT}) -> {sketch.result_annotation()}:"


def _sentence(text: str) -> str:
    """Return lines of a method's docstring, without the indentation of the first."""
    return in_docstring(sentence(text, WIDTH - 2 * len(_INDENT) - 6), _INDENT * 2).strip()


def inference_of(sketch: Sketch) -> str:
    """Return stubs of the inference methods that the definition does not determine."""
    outputs, slot = sketch.outputs_in_words(), sketch.inputs[0][1].name
    several = len(sketch.op_def.outputs) > 1 or sketch.op_def.outputs[-1].repeated
    stubs = []
    if not sketch.has_shape:
        hint = f"The definition does not say it. That of an input is `self.{slot}.type.shape`."
        stub = "infer_shape", "list[Shape | None]" if several else "Shape", "The shape of", hint
        stubs.append(stub)
    if not sketch.has_type:
        hint = (
            "The definition does not say it. That of an input is "
            f"`self.{slot}.type.element_type`; of what is quantized, it is float32 here."
        )
        kind = "list[ElementType]" if several else "ElementType"
        stubs.append(("infer_element_type", kind, "The element type of", hint))
    if not sketch.has_count:
        hint = "The definition does not say how often the last of them repeats."
        stubs.append(("output_count", "int", "The number of the outputs", hint))
    return "".join(
        fill_template(
            "common/inference.py",
            function=function,
            type=kind,
            description=_sentence(f"{description} {outputs}."),
            hint=_sentence(hint),
            **{"class": sketch.class_name},
        )
        for function, kind, description, hint in stubs
    )
