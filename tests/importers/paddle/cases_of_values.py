"""Cases of operators that compute values: activations, arithmetic, reductions, products, norms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.importers.paddle.case import Case, normal, unary
from tests.importers.paddle.writers import Double, Place

from crosschip.ir import Array, ElementType

IMAGE = normal(1, 2, 4, 7, 9)
MATRIX = normal(2, 3, 5)
POSITIVE = np.abs(normal(3, 2, 4, 3)) + np.float32(0.1)
ROW = np.abs(normal(4, 3)) + np.float32(0.5)
PER_CHANNEL = np.abs(normal(5, 4)) + np.float32(0.1)
LINE = normal(6, 9)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Array, axis: int) -> Array:
    return np.asarray(np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True))


def standardized(x: Array, axes: tuple[int, ...]) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-3))


NO_SEED = {"is_test": True, "seed": 0, "fix_seed": False}

ACTIVATIONS = {
    "relu": unary("relu", "relu", lambda x: np.where(x > 0, x, 0), x=IMAGE),
    "relu6": unary(
        "relu6", "relu6", lambda x: np.clip(x, 0, 6), {"threshold": 6.0}, {}, x=IMAGE * 5
    ),
    "sigmoid": unary("sigmoid", "sigmoid", sigmoid, x=IMAGE),
    "tanh": unary("tanh", "tanh", np.tanh, x=IMAGE),
    "silu": unary("silu", "silu", lambda x: x * sigmoid(x), x=IMAGE),
    "swish": unary("swish", "swish", lambda x: x * sigmoid(x), {"beta": 1.0}, {}, x=IMAGE),
    "hard_swish": unary(
        "hard_swish",
        "hardswish",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        {"threshold": 6.0, "scale": 6.0, "offset": 3.0},
        {},
        x=IMAGE * 3,
    ),
    "hard_sigmoid": unary(
        "hard_sigmoid",
        "hardsigmoid",
        lambda x: np.clip(0.3 * x + 0.4, 0, 1),
        {"slope": 0.3, "offset": 0.4},
        x=IMAGE,
    ),
    "leaky_relu": unary(
        "leaky_relu",
        "leaky_relu",
        lambda x: np.where(x > 0, x, 0.3 * x),
        {"alpha": 0.3},
        {"negative_slope": Double(0.3)},
        x=IMAGE,
    ),
    "softmax": unary("softmax", "softmax", lambda x: softmax(x, -1), {"axis": -1}, x=IMAGE),
    "softmax of channels": unary(
        "softmax", "softmax", lambda x: softmax(x, 1), {"axis": 1}, x=IMAGE
    ),
}

ARITHMETIC = {
    "exp": unary("exp", "exp", np.exp, x=IMAGE),
    "sqrt": unary("sqrt", "sqrt", np.sqrt, x=POSITIVE),
    "pow": unary("pow", "pow", lambda x: x**2.5, {"factor": 2.5}, {"y": 2.5}, x=POSITIVE),
    "clip": unary(
        "clip",
        "clip",
        lambda x: np.clip(x, -0.5, 0.7),
        {"min": -0.5, "max": 0.7},
        {},
        x=IMAGE,
        arguments=[-0.5, 0.7],
    ),
    "scale, bias after": unary(
        "scale",
        "scale",
        lambda x: 2 * x + 3,
        {"scale": 2.0, "bias": 3.0, "bias_after_scale": True},
        {"bias": 3.0, "bias_after_scale": True},
        x=IMAGE,
        arguments=[2.0],
    ),
    "scale, bias before": unary(
        "scale",
        "scale",
        lambda x: 2 * (x + 3),
        {"scale": 2.0, "bias": 3.0, "bias_after_scale": False},
        {"bias": 3.0, "bias_after_scale": False},
        x=IMAGE,
        arguments=[2.0],
    ),
    "scale of integers": unary(
        "scale",
        "scale",
        lambda x: 3 * x - 2,
        {"scale": 3.0, "bias": -2.0, "bias_after_scale": True},
        {"bias": -2.0, "bias_after_scale": True},
        x=np.array([1, -5, 7]),
        arguments=[3.0],
    ),
    "assign": unary("assign", "assign", lambda x: x, x=IMAGE),
    "dropout, scaled when trained": unary(
        "dropout",
        "dropout",
        lambda x: x,
        {"dropout_implementation": "upscale_in_train", "dropout_prob": 0.25, "is_test": True},
        {"mode": "upscale_in_train", **NO_SEED},
        x=IMAGE,
        arguments=[None, 0.25],
        output="Out Mask",
    ),
    "dropout, scaled now": unary(
        "dropout",
        "dropout",
        lambda x: 0.75 * x,
        {"dropout_implementation": "downgrade_in_infer", "dropout_prob": 0.25, "is_test": True},
        {"mode": "downgrade_in_infer", **NO_SEED},
        x=IMAGE,
        arguments=[None, 0.25],
        output="Out Mask",
    ),
    "cast": unary(
        "cast",
        "cast",
        lambda x: x.astype(np.int32),
        {"in_dtype": 5, "out_dtype": 2},
        {"dtype": ElementType.INT32},
        x=IMAGE * 9,
    ),
    "fill_any_like": unary(
        "fill_any_like",
        "full_like",
        lambda x: np.full(x.shape, 2.5, np.float32),
        {"value": 2.5, "dtype": -1},
        {"dtype": ElementType.FLOAT32, "place": Place([0, 0, ""])},
        x=IMAGE,
        arguments=[2.5],
    ),
}

ARITHMETIC |= {
    type: Case(
        inputs={"x": POSITIVE},
        parameters={"y": ROW},
        paddle2=(type, {"X": "x", "Y": "y"}, "Out", {"axis": -1}),
        paddle3=(name, ["x", "y"], {}),
        expected=[function(POSITIVE, ROW)],
    )
    for type, name, function in (
        ("elementwise_add", "add", np.add),
        ("elementwise_sub", "subtract", np.subtract),
        ("elementwise_mul", "multiply", np.multiply),
        ("elementwise_div", "divide", np.divide),
        ("elementwise_pow", "elementwise_pow", np.power),
        ("elementwise_max", "maximum", np.maximum),
        ("elementwise_min", "minimum", np.minimum),
    )
}

PRODUCTS = {
    "matmul_v2": Case(
        inputs={"x": POSITIVE},
        parameters={"y": MATRIX[:, :4]},
        paddle2=("matmul_v2", {"X": "x", "Y": "y"}, "Out", {"trans_x": False, "trans_y": False}),
        paddle3=("matmul", ["x", "y"], {"transpose_x": False, "transpose_y": False}),
        expected=[np.stack([one @ MATRIX[:, :4] for one in POSITIVE])],
    ),
    "matmul_v2, transposed": Case(
        inputs={"x": POSITIVE},
        parameters={"y": MATRIX.T[:, :3].repeat(2, 1)[:, :4]},
        paddle2=("matmul_v2", {"X": "x", "Y": "y"}, "Out", {"trans_x": True, "trans_y": True}),
        paddle3=("matmul", ["x", "y"], {"transpose_x": True, "transpose_y": True}),
        expected=[np.stack([one.T @ MATRIX.T[:, :3].repeat(2, 1)[:, :4].T for one in POSITIVE])],
    ),
    "bmm": Case(
        inputs={"x": POSITIVE},
        parameters={"y": np.stack([MATRIX, -MATRIX])},
        paddle2=("bmm", {"X": "x", "Y": "y"}, "Out", {}),
        paddle3=("bmm", ["x", "y"], {}),
        expected=[np.stack([POSITIVE[0] @ MATRIX, -POSITIVE[1] @ MATRIX])],
    ),
}


def reduction(name: str, function: Callable[..., Array], keep: bool) -> Case:
    """A reduction of two axes."""
    return unary(
        f"reduce_{name}",
        name,
        lambda x: function(x, (1, 3), keepdims=keep),
        {"dim": [1, -1], "keep_dim": keep, "reduce_all": False},
        ({"dtype": None} if name == "sum" else {}) | {"keepdim": keep},
        x=IMAGE,
        arguments=[[1, -1]],
    )


REDUCTIONS = {
    f"reduce_{name}, keep_dim {keep}": reduction(name, function, keep)
    for name, function in (("mean", np.mean), ("sum", np.sum), ("max", np.max))
    for keep in (True, False)
}
REDUCTIONS["reduce_mean of all"] = unary(
    "reduce_mean",
    "mean",
    np.mean,
    {"dim": [0], "keep_dim": False, "reduce_all": True},
    {"keepdim": False},
    x=IMAGE,
    arguments=[[0, 1, 2, 3]],
)


def layer_norm(axes: tuple[int, ...], affine: bool) -> Case:
    """A normalization over the last axes; scale and bias are flat in the file."""
    scale = np.resize(LINE, [IMAGE.shape[axis] for axis in axes])
    attributes = {"begin_norm_axis": axes[0], "epsilon": 1e-3}
    plain = standardized(IMAGE, axes)
    return Case(
        inputs={"x": IMAGE},
        parameters={"s": scale.ravel(), "b": 2 * scale.ravel()} if affine else {},
        paddle2=(
            "layer_norm",
            {"X": "x", "Scale": "s", "Bias": "b"} if affine else {"X": "x"},
            "Y Mean Variance",
            attributes,
        ),
        paddle3=("layer_norm", ["x", "s", "b"] if affine else ["x", None, None], attributes),
        expected=[plain * scale + 2 * scale if affine else plain],
    )


TESTING = {"is_test": True, "use_global_stats": True, "trainable_statistics": False}
mean, variance, scale, bias = (PER_CHANNEL + np.float32(offset) for offset in range(4))
along = (slice(None), None, None)
NORMALIZATIONS = {
    "batch_norm": Case(
        inputs={"x": IMAGE},
        parameters={"m": mean, "v": variance, "s": scale, "b": bias},
        paddle2=(
            "batch_norm",
            {"X": "x", "Mean": "m", "Variance": "v", "Scale": "s", "Bias": "b"},
            "Y MeanOut VarianceOut SavedMean SavedVariance ReserveSpace",
            {"epsilon": 1e-3, "momentum": 0.9, "data_layout": "NCHW", **TESTING},
        ),
        paddle3=(
            "batch_norm_",
            ["x", "m", "v", "s", "b"],
            {"epsilon": 1e-3, "momentum": 0.9, "data_format": "NCHW", **TESTING},
        ),
        expected=[
            (IMAGE - mean[along]) / np.sqrt(variance[along] + 1e-3) * scale[along] + bias[along]
        ],
    ),
    "layer_norm": layer_norm((3,), affine=True),
    "layer_norm of two axes": layer_norm((2, 3), affine=True),
    "layer_norm without scale and bias": layer_norm((3,), affine=False),
}

CASES = ACTIVATIONS | ARITHMETIC | PRODUCTS | REDUCTIONS | NORMALIZATIONS
