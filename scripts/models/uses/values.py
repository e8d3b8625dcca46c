"""Uses of the operators that compute element by element."""

import numpy as np

from uses import Attributes, fixed, integers, loose, normal, positive, real, saved, use, whole

X = normal(2, 3, 4, 5)
INTEGERS = whole(3, 4)

for name in ("abs", "cos", "exp", "floor", "relu", "sigmoid", "silu", "sin", "square", "tanh"):
    use(name, "rank 4", {"X": 3 * X})
    use(name, "rank 1", {"X": normal(6, seed=1)})
for name in ("log", "rsqrt", "sqrt"):
    use(name, "rank 4", {"X": positive(2, 3, 4, 5)})
    use(name, "rank 1", {"X": positive(6, seed=1)})
for name in ("abs", "square"):
    use(name, "int64", {"X": INTEGERS})

use("relu6", "default", {"X": 4 * X})
use("relu6", "another threshold", {"X": 4 * X}, threshold=2.5)
use("leaky_relu", "default", {"X": X})
use("leaky_relu", "small alpha", {"X": X}, alpha=0.3)
use("leaky_relu", "large alpha", {"X": X}, alpha=1.5)
use("hard_sigmoid", "default", {"X": 3 * X})
use("hard_sigmoid", "slope and offset", {"X": 3 * X}, slope=0.3, offset=0.4)
use("hard_swish", "rank 4", {"X": 4 * X})
use("hard_swish", "rank 1", {"X": 4 * normal(9)})
use("swish", "default", {"X": X})
use("swish", "rank 1", {"X": 4 * normal(9)})
use("gelu", "exact", {"X": X})
use("gelu", "by tanh", {"X": X}, approximate=True)
use("softplus", "default", {"X": 20 * X})
use("softplus", "beta and threshold", {"X": 20 * X}, beta=2.0, threshold=15.0)
use("softplus", "low threshold", {"X": X}, beta=0.5, threshold=0.3)

use("prelu", "all", {"X": X, "Alpha": saved(real(0.3))}, mode="all")
use("prelu", "channel", {"X": X, "Alpha": saved(normal(3))}, mode="channel", data_format="NCHW")
use(
    "prelu", "channel last", {"X": X, "Alpha": saved(normal(5))}, mode="channel", data_format="NHWC"
)
use("prelu", "channel as four axes", {"X": X, "Alpha": saved(normal(1, 3, 1, 1))}, mode="channel")
use("prelu", "channel of rank 2", {"X": normal(4, 3), "Alpha": saved(normal(3))}, mode="channel")
use("prelu", "element", {"X": X, "Alpha": saved(normal(1, 3, 4, 5, seed=2))}, mode="element")
use("prelu", "computed alpha", {"X": X, "Alpha": fixed(normal(3))}, mode="channel")

for name in ("softmax", "log_softmax"):
    use(name, "default", {"X": X})
    use(name, "axis 1", {"X": X}, axis=1)
    use(name, "axis -2", {"X": X}, axis=-2)
    use(name, "rank 1", {"X": normal(6)}, axis=0)

use("pow", "square", {"X": X}, factor=2.0)
use("pow", "fraction", {"X": positive(2, 3)}, factor=-0.75)
use("pow", "factor in a parameter", {"X": X, "FactorTensor": saved(real(3.0))})
use("pow", "factor computed", {"X": X, "FactorTensor": fixed(real(3.0))})
use("pow", "int64", {"X": INTEGERS}, factor=2.0)

use("scale", "bias after", {"X": X}, scale=2.0, bias=3.0)
use("scale", "bias before", {"X": X}, scale=2.0, bias=3.0, bias_after_scale=False)
use("scale", "nothing", {"X": X})
use("scale", "int64", {"X": INTEGERS}, scale=2.0, bias=3.0)
use("scale", "int64 by a fraction", {"X": INTEGERS}, scale=1.5, bias=0.5)
use("scale", "factor in a parameter", {"X": X, "ScaleTensor": saved(real(-2.5))}, bias=1.0)
use("scale", "factor computed", {"X": X, "ScaleTensor": fixed(real(-2.5))}, bias=1.0)
use(
    "scale",
    "factor computed, bias before",
    {"X": X, "ScaleTensor": fixed(real(-2.5))},
    bias=1.0,
    bias_after_scale=False,
)

BOUNDS: Attributes = {"min": 0.0, "max": 1.0}
use("clip", "both bounds", {"X": X}, min=-0.5, max=0.7)
use(
    "clip",
    "bounds in parameters",
    {"X": X, "Min": saved(real(-0.3)), "Max": saved(real(0.2))},
    **BOUNDS,
)
use(
    "clip", "bounds computed", {"X": X, "Min": fixed(real(-0.3)), "Max": fixed(real(0.2))}, **BOUNDS
)
use("clip", "one bound computed", {"X": X, "Min": fixed(real(-0.3))}, min=0.0, max=0.25)
use("clip", "int64", {"X": INTEGERS}, min=-2.0, max=6.0)
use("clip", "int32, fractional bounds", {"X": whole(8, dtype="int32")}, min=-2.5, max=6.5)

use(
    "dropout",
    "scaled in training",
    {"X": X},
    outputs="Out",
    is_test=True,
    dropout_prob=0.3,
    dropout_implementation="upscale_in_train",
)
use(
    "dropout",
    "scaled now",
    {"X": X},
    outputs="Out",
    is_test=True,
    dropout_prob=0.3,
    dropout_implementation="downgrade_in_infer",
)
use("dropout", "default", {"X": X}, outputs="Out", is_test=True)
use("dropout", "everything dropped", {"X": X}, outputs="Out", is_test=True, dropout_prob=1.0)

ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "pow")
for name in ARITHMETIC:
    operator = f"elementwise_{name}"
    large, small = positive(2, 3, 4, 5), positive(2, 3, 4, 5, seed=1)
    use(operator, "same shapes", {"X": large, "Y": small})
    use(operator, "broadcast", {"X": large, "Y": fixed(positive(4, 1, seed=2))})
    use(operator, "axis 1", {"X": large, "Y": fixed(positive(3, 4, seed=2))}, axis=1)
    use(operator, "axis 0", {"X": fixed(large), "Y": fixed(positive(2, seed=2))}, axis=0)
    use(operator, "axis 1 of a parameter", {"X": large, "Y": saved(positive(3, seed=2))}, axis=1)
    use(operator, "one element", {"X": large, "Y": saved(real(2.5))})
    use(operator, "smaller first", {"X": fixed(positive(5, seed=2)), "Y": large})
for name in ("add", "sub", "mul", "max", "min", "pow", "floordiv"):
    exponents = whole(3, 4, seed=1, low=0, high=4) if name == "pow" else whole(3, 4, seed=1)
    divisors = np.where(exponents == 0, 1, exponents)
    operands = {"X": INTEGERS, "Y": divisors if name == "floordiv" else exponents}
    use(f"elementwise_{name}", "int64", operands)
use("elementwise_div", "int64", {"X": INTEGERS, "Y": np.where(INTEGERS == 0, 2, 3 + INTEGERS % 2)})
use(
    "elementwise_floordiv",
    "int32 along axis 0",
    {"X": fixed(whole(3, 4, dtype="int32")), "Y": saved(integers(2, -3, 4))},
    axis=0,
)
use("elementwise_floordiv", "float32", {"X": X, "Y": saved(real(0.75))})

for name in ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"):
    use(name, "int64", {"X": whole(4, 5, high=3, low=0), "Y": whole(4, 5, high=3, low=0, seed=1)})
    use(name, "float32, broadcast", {"X": X, "Y": fixed(X[0, 0, :1])})
    use(name, "one element", {"X": X, "Y": saved(real(0.25))})
TRUTH = normal(4, 5) > 0
use("equal", "bool", {"X": TRUTH, "Y": normal(4, 5, seed=1) > 0})
use("logical_and", "same shapes", {"X": TRUTH, "Y": normal(4, 5, seed=1) > 0})
use("logical_and", "broadcast", {"X": TRUTH, "Y": fixed(normal(5, seed=1) > 0)})
use(
    "logical_and",
    "float32",
    {"X": whole(4, 5, low=0, high=2).astype(np.float32), "Y": normal(4, 5)},
)
use("logical_not", "bool", {"X": TRUTH})
use("logical_not", "int32", {"X": whole(4, 5, dtype="int32", low=0, high=3)})
use("where", "same shapes", {"Condition": TRUTH, "X": normal(4, 5), "Y": normal(4, 5, seed=1)})
use("where", "int64", {"Condition": TRUTH, "X": whole(4, 5), "Y": whole(4, 5, seed=1)})
use("where", "rank 1", {"Condition": TRUTH[0], "X": normal(5), "Y": normal(5, seed=1)})

use("sum", "two", {"X": [X, normal(2, 3, 4, 5, seed=1)]})
use("sum", "three", {"X": [X, normal(2, 3, 4, 5, seed=1), normal(2, 3, 4, 5, seed=2)]})
use("sum", "one", {"X": [X]})

use("assign", "float32", {"X": X})
use("assign", "int64", {"X": INTEGERS})
BOOL, INT32, INT64, FLOAT16, FLOAT32, FLOAT64, UINT8, INT8 = 0, 2, 3, 4, 5, 6, 20, 21
use("cast", "to int32", {"X": 3 * X}, in_dtype=FLOAT32, out_dtype=INT32)
use("cast", "to bool", {"X": whole(3, 4, low=0, high=2)}, in_dtype=INT64, out_dtype=BOOL)
use("cast", "from bool", {"X": TRUTH}, in_dtype=BOOL, out_dtype=FLOAT32)
use("cast", "to float64", {"X": X}, in_dtype=FLOAT32, out_dtype=FLOAT64)
use("cast", "to float16", {"X": X}, in_dtype=FLOAT32, out_dtype=FLOAT16)
use("cast", "to int8", {"X": loose(INTEGERS)}, in_dtype=INT64, out_dtype=INT8)
use("cast", "to uint8", {"X": loose(np.abs(INTEGERS))}, in_dtype=INT64, out_dtype=UINT8)
