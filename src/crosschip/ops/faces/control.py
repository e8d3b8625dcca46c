"""Names and codes of control of a run in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNRt, faces
from crosschip.ops.standard.control import Assert

faces(
    Assert,
    nnrt=(
        NNRt(
            *(78, "ASSERT", ("condition", "data")),
            parameters={"SUMMARIZE": "summarize"},
            translation="NNRt's one output is the first of them.",
        ),
    ),
)
