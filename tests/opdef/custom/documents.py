"""Documents of one operator, made of what a test says of it."""

from __future__ import annotations

from pathlib import Path

from crosschip import opdef
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import (
    Constraint,
    ConstraintType,
    Enumeration,
    Input,
    OpDef,
    OpDefCollection,
    OpDefList,
    Output,
    Parameter,
    Rank,
    Shape,
    SupplementalOpDefList,
)
from crosschip.opdef.documents import write

FLOAT = (Datatype.FLOAT_32,)


def rules(*texts: str) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(id=number, type=ConstraintType.DESCRIPTION, text=text)
        for number, text in enumerate(texts)
    )


def taken(
    name: str = "X",
    *constraints: str,
    datatypes: tuple[Datatype, ...] = FLOAT,
    rank: Rank = Rank.ANY,
    mandatory: bool = True,
    default: str | None = None,
    repeated: bool = False,
    static: bool = False,
) -> Input:
    return Input(
        name=name,
        mandatory=mandatory,
        constraints=rules(*constraints),
        datatypes=datatypes,
        shape=Shape(rank=rank),
        default=default,
        repeated=repeated,
        static=static,
    )


def made(
    name: str = "Out",
    *constraints: str,
    datatypes: tuple[Datatype, ...] = FLOAT,
    rank: Rank = Rank.ANY,
    repeated: bool = False,
) -> Output:
    return Output(
        name=name,
        mandatory=True,
        constraints=rules(*constraints),
        datatypes=datatypes,
        shape=Shape(rank=rank),
        repeated=repeated,
    )


def setting(
    name: str,
    *constraints: str,
    datatypes: tuple[Datatype, ...] = (Datatype.INT_32,),
    rank: Rank = Rank.SCALAR,
    default: str | None = None,
    names: tuple[str, ...] = (),
) -> Parameter:
    return Parameter(
        name=name,
        mandatory=default is None,
        constraints=rules(*constraints),
        datatypes=datatypes,
        shape=Shape(rank=rank),
        default=default,
        enumeration=Enumeration(names=names) if names else None,
    )


LIKE_X = made("Out", "shape(Out) == shape(X)")


def package_of(
    folder: Path,
    *tensors: Input | Output | Parameter,
    name: str = "Try",
    overrides: bool = False,
    domain: str = "example",
    package: str = "Tries",
    supplements: tuple[SupplementalOpDefList, ...] = (),
) -> opdef.Package:
    """Return a package with one operator of these tensors, written to a file and read back."""
    collection = OpDefCollection(
        package_name=package,
        domain=domain,
        version="1.0",
        definitions=OpDefList(
            op_defs=(
                OpDef(
                    name=name,
                    inputs=tuple(t for t in tensors if isinstance(t, Input)),
                    outputs=tuple(t for t in tensors if isinstance(t, Output)),
                    parameters=tuple(t for t in tensors if isinstance(t, Parameter)),
                    use_default_translation=overrides,
                ),
            )
        ),
        supplements=supplements,
    )
    path = folder / "operators.xml"
    path.write_bytes(write(collection))
    return opdef.Package.read(path)
