"""Decomposition of the operators that Paddle Lite's optimizer creates into operators of Paddle.

Sources: lite/core/optimizer/mir/fusion and lite/operators of Paddle Lite 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from crosschip.importers.paddle.program import Operator, Value
from crosschip.ir import ElementType, ModelError, UnsupportedError

Attributes = Mapping[str, Value]

_KERNEL = "__@kernel_type_attr@__"
"""The attribute that names the selected kernel: `calib/fp32_to_int8/arm/…`."""

_QUANTIZE = "calib"
"""The operator that quantizes with a scale."""

_COPIES = ("io_copy", "io_copy_once", "layout", "layout_once")
"""Operators that copy a tensor between devices or memory layouts."""

_CONVERSIONS: Mapping[str, ElementType] = {
    "bool": ElementType.BOOL,
    "float": ElementType.FLOAT32,
    "fp32": ElementType.FLOAT32,
    "fp16": ElementType.FLOAT16,
    "int32": ElementType.INT32,
    "int64": ElementType.INT64,
}
_ELEMENTWISE = ("add", "sub", "mul", "div", "max", "min")
_CONVOLUTIONS = ("conv2d", "depthwise_conv2d", "conv2d_transpose", "conv3d")

_CONVOLUTION_ACTIVATIONS: Mapping[str, Mapping[str, str]] = {
    "relu": {},
    "relu6": {"threshold": "fuse_brelu_threshold"},
    "sigmoid": {},
    "tanh": {},
    "abs": {},
    "swish": {"beta": "swish_scale"},
    "leaky_relu": {"alpha": "leaky_relu_alpha"},
    "hard_swish": {
        "threshold": "hard_swish_threshold",
        "scale": "hard_swish_scale",
        "offset": "hard_swish_offset",
    },
    "hard_sigmoid": {"slope": "slope", "offset": "offset"},
    "prelu": {"mode": "prelu_mode"},
    "gelu": {},
}
"""For each activation, its attributes and the convolution attributes that hold their values."""

_OTHER_ACTIVATIONS: Mapping[str, Mapping[str, str]] = {
    **_CONVOLUTION_ACTIVATIONS,
    "relu6": {"threshold": "alpha"},
    "leaky_relu": {"alpha": "alpha"},
}
"""The same for other operators."""


def unfuse(operator: Operator) -> Sequence[Operator]:
    """Return the operators of Paddle that compute an operator, in order.

    Raises:
        ModelError: a slot is missing, or has several variables.
        UnsupportedError: the operator is used in a way that cannot be expressed.
    """
    rule = _RULES.get(operator.type)
    if rule is None:
        return (operator,)
    where = f"operator {operator.number} ({operator.label})"
    try:
        return tuple(rule(operator))
    except KeyError as error:
        raise ModelError(f"{where}: has no {error}") from None
    except ValueError:
        raise ModelError(f"{where}: must have one output") from None


def _copy(operator: Operator) -> Iterator[Operator]:
    yield _as(operator, "assign", {"X": operator.inputs["Input"]})


def _calib(operator: Operator) -> Iterator[Operator]:
    """Replace a conversion by `cast`, or by `calib`, according to the kernel's name."""
    kernel = str(operator.attributes.get(_KERNEL, ""))
    name = next((part for part in kernel.split("/") if "_to_" in part), kernel)
    before, _, after = name.partition("_to_")
    after = after.removesuffix("_once")
    if before not in _CONVERSIONS or after not in _CONVERSIONS:
        to_reals = before == "int8" and after == "fp32"
        attributes = {"out_dtype": ElementType.FLOAT32} if to_reals else {}
        yield operator._replace(type=_QUANTIZE, attributes={**operator.attributes, **attributes})
        return
    cast_attributes = {"in_dtype": _CONVERSIONS[before], "out_dtype": _CONVERSIONS[after]}
    yield _as(operator, "cast", {"X": operator.inputs["Input"]}, cast_attributes)


def _product(operator: Operator) -> Operator:
    """Replace `fc` of type matmul by a matrix product over the last axis of its input."""
    attributes = _drop(operator.attributes, "activation_type", "alpha")
    factors = {"X": operator.inputs["Input"], "Y": operator.inputs["W"]}
    scales = {"Input0_scale": "X0_scale", "W0_scale": "Y0_scale"}
    renamed = {to: attributes[name] for name, to in scales.items() if name in attributes}
    return operator._replace(type="matmul_v2", inputs=factors, attributes={**attributes, **renamed})


def _convolution(operator: Operator) -> Iterator[Operator]:
    attributes = operator.attributes
    for name in ("fuse_elementwise_op_type", "scale_activation_type"):
        if attributes.get(name):
            raise UnsupportedError(
                f"operator {operator.number} ({operator.label}): {name} "
                f"{attributes[name]!r} cannot be expressed; optimise for another target"
            )
    activation = attributes.get("act_type", "") if attributes.get("with_act") else ""
    if not activation and attributes.get("fuse_relu"):
        activation = "relu"
    plain = _drop(attributes, "act_type", "with_act", "fuse_relu")
    residual = operator.inputs.get("ResidualData", ())
    (result,) = operator.outputs["Output"]
    steps: list[Step] = [("elementwise_add", {"Y": residual}, {"axis": -1})] if residual else []
    steps += _activation(operator, activation, _CONVOLUTION_ACTIVATIONS)
    yield from _chain(operator._replace(attributes=plain), "Output", result, steps)


def _fc(operator: Operator) -> Iterator[Operator]:
    attributes = operator.attributes
    bias, (result,) = operator.inputs.get("Bias", ()), operator.outputs["Out"]
    steps = _activation(operator, attributes.get("activation_type", ""), _OTHER_ACTIVATIONS)
    if not str(attributes.get("op_type", "")).startswith("matmul"):
        plain = operator._replace(attributes=_drop(attributes, "activation_type"))
        yield from _chain(plain, "Out", result, steps)
        return
    if bias:
        steps = [("elementwise_add", {"Y": bias}, {"axis": -1}), *steps]
    yield from _chain(_product(operator), "Out", result, steps)


def _elementwise(operator: Operator) -> Iterator[Operator]:
    attributes = operator.attributes
    plain = operator._replace(
        type=operator.type.removeprefix("fusion_").removesuffix("_activation"),
        attributes=_drop(attributes, "act_type"),
    )
    steps = _activation(operator, attributes.get("act_type", ""), _OTHER_ACTIVATIONS)
    (result,) = operator.outputs["Out"]
    yield from _chain(plain, "Out", result, steps)


def _scale(operator: Operator) -> Iterator[Operator]:
    activation = operator.attributes.get("activation_type", "")
    if not activation:
        yield operator
        return
    if activation in ("hard_swish", "hard_sigmoid", "swish"):  # their attributes take scale's place
        raise UnsupportedError(
            f"operator {operator.number} ({operator.label}): activation_type {activation!r} "
            f"cannot be expressed; optimise for another target"
        )
    steps = _activation(operator, activation, _OTHER_ACTIVATIONS)
    attributes = operator.attributes
    if attributes.get("fuse_scaleact"):
        steps.append(_scale_step(attributes["scale1"], attributes["bias1"]))
    (result,) = operator.outputs["Out"]
    plain = operator._replace(attributes=_drop(attributes, "activation_type"))
    yield from _chain(plain, "Out", result, steps)


def _product_of_elements(operator: Operator) -> Iterator[Operator]:
    """Decompose a product into which the OpenCL pass has fused a scale and an activation."""
    attributes = operator.attributes
    if not attributes.get("fuse_scale"):
        yield operator
        return
    steps = [_scale_step(attributes["scale"], attributes["bias"])]
    steps += _activation(operator, attributes.get("activation_type", ""), _OTHER_ACTIVATIONS)
    (result,) = operator.outputs["Out"]
    plain = operator._replace(attributes=_drop(attributes, "scale", "bias"))
    yield from _chain(plain, "Out", result, steps)


def _instance_norm(operator: Operator) -> Iterator[Operator]:
    steps = _activation(
        operator, operator.attributes.get("activation_type", ""), _OTHER_ACTIVATIONS
    )
    (result,) = operator.outputs["Y"]
    yield from _chain(operator, "Y", result, steps)


def _greater_than(operator: Operator) -> Iterator[Operator]:
    """Decompose a comparison into which the OpenCL pass has fused a cast to float32."""
    if not operator.attributes.get("fuse_greater_than"):
        yield operator
        return
    (result,) = operator.outputs["Out"]
    kinds = {"in_dtype": ElementType.BOOL, "out_dtype": ElementType.FLOAT32}
    yield from _chain(operator, "Out", result, [("cast", {}, kinds)])


_RULES: Mapping[str, Callable[[Operator], Iterator[Operator]]] = {
    **dict.fromkeys(_COPIES, _copy),
    **dict.fromkeys(("calib", "calib_once"), _calib),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **{f"fusion_elementwise_{name}_activation": _elementwise for name in _ELEMENTWISE},
    "elementwise_mul": _product_of_elements,
    "fc": _fc,
    "greater_than": _greater_than,
    "instance_norm": _instance_norm,
    "scale": _scale,
}

Step = tuple[str, Mapping[str, Sequence[str]], Attributes]
"""Type, further inputs and attributes of an operator with input `X` and output `Out`."""


def _activation(
    operator: Operator, name: Value, parameters: Mapping[str, Mapping[str, str]]
) -> list[Step]:
    """Return the step for an activation; none if the name is empty."""
    if not name:
        return []
    if name not in parameters:
        raise UnsupportedError(
            f"operator {operator.number} ({operator.label}): the activation {name!r} cannot be "
            f"expressed, only {', '.join(parameters)}"
        )
    operator_attributes = operator.attributes
    attributes = {
        to: operator_attributes[source]
        for to, source in parameters[str(name)].items()
        if source in operator_attributes
    }
    slots = ("Prelu_alpha", "Alpha")
    alpha = next((operator.inputs[slot] for slot in slots if operator.inputs.get(slot)), ())
    return [(str(name), {"Alpha": alpha} if name == "prelu" else {}, attributes)]


def _scale_step(scale: Value, bias: Value) -> Step:
    return ("scale", {}, {"scale": scale, "bias": bias, "bias_after_scale": True})


def _chain(operator: Operator, slot: str, result: str, steps: Sequence[Step]) -> Iterator[Operator]:
    """Yield an operator and then the steps, each of which reads the output of the one before it.

    An int8 output of the operator becomes the output of the last step.
    """
    attributes, scale = operator.attributes, f"{slot}0_scale"
    if attributes.get("enable_int8") and scale in attributes:
        kernel = str(attributes.get(_KERNEL, ""))  # `conv2d/int8_out/…`, `fc/int8out/…`
        if "int8out" in kernel.replace("_", ""):
            steps = [*steps, (_QUANTIZE, {}, {"scale": attributes[scale]})]
        operator = operator._replace(attributes=_drop(attributes, scale))
    values = [*(f"{result}@{number}" for number in range(len(steps))), result]
    yield operator._replace(outputs={**operator.outputs, slot: (values[0],)})
    for (type, inputs, step_attributes), read, write in zip(
        steps, values, values[1:], strict=False
    ):
        first = "Input" if type == _QUANTIZE else "X"
        yield operator._replace(
            type=type,
            inputs={first: (read,), **inputs},
            outputs={"Out": (write,)},
            attributes=step_attributes,
        )


def _as(
    operator: Operator,
    type: str,
    inputs: Mapping[str, Sequence[str]],
    attributes: Attributes | None = None,
) -> Operator:
    outputs = {"Out": operator.outputs["Out"]}
    return operator._replace(type=type, inputs=inputs, outputs=outputs, attributes=attributes or {})


def _drop(attributes: Attributes, *names: str) -> Attributes:
    return {name: attributes[name] for name in attributes if name not in names}
