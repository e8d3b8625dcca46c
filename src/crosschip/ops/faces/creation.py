"""Names and codes of creation of tensors in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, Range, Rank, ShapeOf

faces(
    ShapeOf,
    nnadapter=NNAdapter(73),
    nnrt=(NNRt(27, "SHAPE", translation="The output is int32."),),
    hdi=(NodeType.SHAPE,),
    onnx=("Shape",),
)

faces(
    Rank,
    nnrt=(NNRt(98, "RANK"),),
)

faces(
    Fill,
    nnadapter=NNAdapter(24),
    nnrt=(
        NNRt(14, "FILL", ("value", "shape")),
        NNRt(
            *(68, "CONSTANT_OF_SHAPE", ("shape",)),
            parameters={"DATA_TYPE": "", "VALUE": "value"},
            translation="VALUE is float32 and becomes DATA_TYPE.",
        ),
    ),
    hdi=(NodeType.FILL,),
    onnx=("ConstantOfShape",),
)

faces(
    FillLike,
    nnadapter=NNAdapter(25),
)

faces(
    Range,
    nnadapter=NNAdapter(61),
    nnrt=(
        NNRt(
            *(66, "RANGE", ()),
            parameters={"START": "start", "LIMIT": "end", "DELTA": "step"},
            translation="The three become the element type of the input, of which nothing else "
            "matters.",
        ),
    ),
    onnx=("Range",),
)

faces(
    OneHot,
    nnrt=(
        NNRt(
            *(23, "ONE_HOT", ("indices", "depth", "on_value", "off_value")),
            parameters={"AXIS": "axis"},
        ),
    ),
    hdi=(NodeType.ONE_HOT,),
    onnx=("OneHot",),
)
