"""The files of operators in C, and of the library that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.opdef.custom.native import HEADER
from crosschip.opdef.definitions import Tensor
from crosschip.opdef.generation.names import variable_name
from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.python import description, imports_of, inference_of
from crosschip.opdef.generation.sketches import Sketch
from crosschip.opdef.generation.texts import WIDTH, filled, in_comment

_FOLDER = "native"


def add_operator(project: Project, each: Sketch) -> None:
    """Add the module of an operator, and the stub of its kernel."""
    inference = inference_of(each)
    words = {
        "title": each.op_def.name,
        "package_title": project.collection.package_name,
        "function": f"{project.name}_{each.module.strip('_')}",
    }
    text = filled(
        "native/operator.py",
        imports=imports_of(inference),
        package=project.name,
        description=description(each),
        inference=inference,
        **words,
        **{"class": each.class_name},
    )
    project.add(f"src/{project.name}/{each.module}.py", f"{text.rstrip()}\n", each.op_def.name)
    variables = list(_variables(each))
    kernel = filled(
        "native/kernel.c",
        description=in_comment(each.description(WIDTH - 3)),
        tensors="\n".join(f"    {line}" for _, line in variables),
        unused="\n".join(f"    (void){name};" for name, _ in variables),
        **words,
    )
    project.add(f"{_FOLDER}/{each.module}.c", kernel, each.op_def.name)


def add_library(project: Project) -> None:
    """Add what makes a library of the kernels."""
    project.add(f"{_FOLDER}/crosschip_kernel.h", HEADER.read_bytes())
    project.add(f"{_FOLDER}/crosschip_tensors.h", filled("native/crosschip_tensors.h"))
    project.add(f"{_FOLDER}/_library.c", filled("native/library.c"))
    project.add("Makefile", filled("native/Makefile", package=project.name))
    project.add("hatch_build.py", filled("native/hatch_build.py", package=project.name))
    project.add(".gitignore", filled("native/gitignore"))


def _variables(each: Sketch) -> Iterator[tuple[str, str]]:
    """Yield the name and the declaration of a variable for each tensor."""
    used_names: set[str] = set()
    op_def = each.op_def
    roles: Sequence[tuple[str, Sequence[Tensor]]] = (
        ("input", op_def.inputs),
        ("parameter", op_def.parameters),
        ("output", op_def.outputs),
    )
    for role, tensors in roles:
        for place, tensor in zip(_places(role, tensors), tensors, strict=True):
            name = variable_name(tensor.name, used_names)
            used_names.add(name)
            many = f" /* and call->{role}_count - {len(tensors)} more */"
            comment = many if getattr(tensor, "repeated", False) else ""
            yield name, f"const crosschip_tensor *{name} = &call->{role}s[{place}];{comment}"


def _places(role: str, tensors: Sequence[Tensor]) -> Iterator[str]:
    """Yield the place of each tensor in the call: from the end, behind one that repeats."""
    after_repeated = False
    for index, tensor in enumerate(tensors):
        yield f"call->{role}_count - {len(tensors) - index}" if after_repeated else str(index)
        after_repeated = after_repeated or getattr(tensor, "repeated", False)
