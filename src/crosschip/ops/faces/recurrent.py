"""Names and codes of recurrent networks in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNRt, faces
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN

faces(
    RNN,
    onnx=["RNN"],
)

faces(
    GRU,
    onnx=["GRU"],
)

faces(
    LSTM,
    nnrt=[
        NNRt(
            75,
            "LSTM",
            (
                *("input", "weight", "recurrence_weight", "bias"),
                *("initial_hidden", "initial_cell"),
            ),
            dict.fromkeys(
                (
                    *("BIDIRECTIONAL", "HAS_BIAS", "INPUT_SIZE", "HIDDEN_SIZE", "NUM_LAYERS"),
                    *("NUM_DIRECTIONS", "DROPOUT", "ZONEOUT_CELL", "ZONEOUT_HIDDEN", "PROJ_SIZE"),
                ),
                "",
            ),
            "BIDIRECTIONAL sets direction; without HAS_BIAS the bias is left out. Each of the "
            "NUM_LAYERS is an LSTM of its own, with its rows of weights and states; the next one "
            "reads the hidden values with those of the directions side by side, [T, N, D * H], "
            "which is also the first output's form. The sizes follow from the tensors. DROPOUT "
            "means nothing outside training; the zoneouts and PROJ_SIZE must be 0.",
        )
    ],
    onnx=["LSTM"],
)
