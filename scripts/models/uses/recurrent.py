"""Uses of recurrent networks."""

from uses import Attributes, Variable, fixed, integers, normal, ragged, saved, use

HIDDEN, SIZE, STEPS, BATCH = 3, 4, 5, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def weights(mode: str, layers: int, directions: int) -> list[Variable]:
    """The weights of all layers and directions, and then the biases."""
    rows, seed = GATES[mode] * HIDDEN, 0
    found: list[Variable] = []
    for layer in range(layers):
        width = HIDDEN * directions if layer else SIZE
        for _ in range(directions):
            for shape in ((rows, width), (rows, HIDDEN)):
                found.append(saved(normal(*shape, seed=seed)))
                seed += 1
    for _ in range(2 * layers * directions):
        found.append(saved(normal(rows, seed=seed)))
        seed += 1
    return found


for mode in GATES:
    for setting, layers, directions in (("one layer", 1, 1), ("both ways, two layers", 2, 2)):
        state = normal(layers * directions, BATCH, HIDDEN, seed=50)
        inputs: dict[str, object] = {
            "Input": fixed(normal(STEPS, BATCH, SIZE)),
            "PreState": [fixed(state)] * (2 if mode == "LSTM" else 1),
            "WeightList": weights(mode, layers, directions),
        }
        if layers == 2:
            inputs["SequenceLength"] = fixed(integers(5, 3))
        use(
            "rnn",
            f"{mode.lower()}, {setting}",
            inputs,
            outputs="Out State*2" if mode == "LSTM" else "Out State",
            mode=mode,
            num_layers=layers,
            is_bidirec=directions == 2,
            input_size=SIZE,
            hidden_size=HIDDEN,
            is_test=True,
        )

OFFSETS = (0, 3, 4, 6)
PRE: Attributes = {"is_test": True}
INITIAL = fixed(normal(3, 3, seed=3))
CELLS = {
    "Input": ragged(normal(6, 12), OFFSETS),
    "Weight": saved(normal(3, 12, seed=1)),
    "Bias": saved(normal(1, 21, seed=2)),
}
STATES = {"H0": INITIAL, "C0": fixed(normal(3, 3, seed=4))}
use("lstm", "peepholes", CELLS | STATES, outputs="Hidden", **PRE, use_peepholes=True)
PLAIN = CELLS | {"Bias": saved(normal(1, 12, seed=2))}
use("lstm", "backwards", PLAIN, outputs="Hidden", **PRE, use_peepholes=False, is_reverse=True)
UNIT = {
    "Input": normal(2, 9),
    "HiddenPrev": normal(2, 3, seed=1),
    "Weight": saved(normal(3, 9, seed=2)),
    "Bias": saved(normal(1, 9, seed=3)),
}
MADE = "Hidden ResetHiddenPrev Gate"
use("gru_unit", "default", UNIT, outputs=MADE)
use("gru_unit", "origin mode, relu", UNIT, outputs="Hidden", origin_mode=True, activation=3)
