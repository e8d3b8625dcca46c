"""Generation of C kernels and of the library that contains them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.opdef.custom.native import HEADER
from crosschip.opdef.definitions import Tensor
from crosschip.opdef.generation.names import variable_name
from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.python import description, imports_of, inference_of
from crosschip.opdef.generation.sketches import Sketch
from crosschip.opdef.generation.texts import WIDTH, fill_template, in_comment

_FOLDER = "native"


def add_operator(project: Project, sketch: Sketch) -> None:
    """Add an operator's module and the stub of its kernel."""
    inference = inference_of(sketch)
    words = {
        "title": sketch.op_def.name,
        "package_title": project.collection.package_name,
        "function": f"{project.name}_{sketch.module.strip('_')}",
    }
    text = fill_template(
        "native/operator.py",
        imports=imports_of(inference),
        package=project.name,
        description=description(sketch),
        inference=inference,
        **words,
        **{"class": sketch.class_name},
    )
    project.add(f"src/{project.name}/{sketch.module}.py", f"{text.rstrip()}\n", sketch.op_def.name)
    variables = list(_variables(sketch))
    kernel = fill_template(
        "native/kernel.c",
        description=in_comment(sketch.description(WIDTH - 3)),
        tensors="\n".join(f"    {line}" for _, line in variables),
        unused="\n".join(f"    (void){name};" for name, _ in variables),
        **words,
    )
    project.add(f"{_FOLDER}/{sketch.module}.c", kernel, sketch.op_def.name)


def add_library(project: Project) -> None:
    """Add the files that build the library."""
    project.add(f"{_FOLDER}/crosschip_kernel.h", HEADER.read_bytes())
    project.add(f"{_FOLDER}/crosschip_tensors.h", fill_template("native/crosschip_tensors.h"))
    project.add(f"{_FOLDER}/_library.c", fill_template("native/library.c"))
    project.add("Makefile", fill_template("native/Makefile", package=project.name))
    project.add("hatch_build.py", fill_template("native/hatch_build.py", package=project.name))
    project.add(".gitignore", fill_template("native/gitignore"))


def _variables(sketch: Sketch) -> Iterator[tuple[str, str]]:
    """Yield the name and the declaration of a C variable for each tensor."""
    used_names: set[str] = set()
    op_def = sketch.op_def
    roles: Sequence[tuple[str, Sequence[Tensor]]] = (
        ("input", op_def.inputs),
        ("parameter", op_def.parameters),
        ("output", op_def.outputs),
    )
    for role, tensors in roles:
        for index, tensor in zip(_index_expressions(role, tensors), tensors, strict=True):
            name = variable_name(tensor.name, used_names)
            used_names.add(name)
            many = f" /* and call->{role}_count - {len(tensors)} more */"
            comment = many if getattr(tensor, "repeated", False) else ""
            yield name, f"const crosschip_tensor *{name} = &call->{role}s[{index}];{comment}"


def _index_expressions(role: str, tensors: Sequence[Tensor]) -> Iterator[str]:
    """Yield the index expression of each tensor; after a repeated one it counts from the end."""
    after_repeated = False
    for index, tensor in enumerate(tensors):
        yield f"call->{role}_count - {len(tensors) - index}" if after_repeated else str(index)
        after_repeated = after_repeated or getattr(tensor, "repeated", False)
