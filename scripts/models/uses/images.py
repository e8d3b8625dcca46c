"""Uses of the operators on images."""

import numpy as np

from uses import Attributes, fixed, integers, loose, normal, real, saved, use

X = normal(2, 4, 7, 9)
LAST = normal(2, 7, 9, 4)
FILTER = saved(normal(6, 4, 3, 3, seed=1))
GROUPED = saved(normal(6, 2, 3, 3, seed=1))
DEPTHWISE = saved(normal(8, 1, 3, 3, seed=1))

CONVOLUTIONS: dict[str, Attributes] = {
    "default": {},
    "pads": {"paddings": [1, 2]},
    "four pads": {"paddings": [1, 0, 2, 1]},
    "strides": {"strides": [2, 1], "paddings": [1, 1]},
    "dilations": {"dilations": [1, 2], "paddings": [1, 2]},
    "same": {"padding_algorithm": "SAME", "strides": [2, 2]},
    "same, dilated": {"padding_algorithm": "SAME", "dilations": [2, 2]},
    "valid": {"padding_algorithm": "VALID", "paddings": [1, 1]},
}
for name, weights, groups in (("conv2d", FILTER, 1), ("depthwise_conv2d", DEPTHWISE, 4)):
    for setting, attributes in CONVOLUTIONS.items():
        use(name, setting, {"Input": X, "Filter": weights}, groups=groups, **attributes)
    use(name, "open sizes", {"Input": loose(X, 1), "Filter": weights}, groups=groups)
    for setting in ("four pads", "strides", "same"):
        use(
            name,
            f"channels last, {setting}",
            {"Input": LAST, "Filter": weights},
            groups=groups,
            data_format="NHWC",
            **CONVOLUTIONS[setting],
        )
use("conv2d", "groups", {"Input": X, "Filter": GROUPED}, groups=2)
use("conv2d", "computed filter", {"Input": X, "Filter": fixed(FILTER.array)})

UPWARD = saved(normal(4, 6, 3, 3, seed=1))
UPWARDS: dict[str, Attributes] = {
    "default": {},
    "pads": {"paddings": [1, 1], "strides": [2, 2]},
    "four pads": {"paddings": [1, 0, 2, 1], "strides": [2, 1]},
    "dilations": {"dilations": [2, 1], "paddings": [1, 0]},
    "output padding": {"output_padding": [1, 0], "strides": [2, 2], "paddings": [1, 1]},
    "output size": {"output_size": [14, 18], "strides": [2, 2], "paddings": [1, 1]},
    "same": {"padding_algorithm": "SAME", "strides": [2, 2]},
    "same, stride 1": {"padding_algorithm": "SAME"},
    "valid": {"padding_algorithm": "VALID", "paddings": [1, 1], "strides": [2, 2]},
    "channels last": {"data_format": "NHWC", "strides": [2, 2]},
}
for setting, attributes in UPWARDS.items():
    image = LAST if setting == "channels last" else X
    use("conv2d_transpose", setting, {"Input": image, "Filter": UPWARD}, **attributes)
use("conv2d_transpose", "open sizes", {"Input": loose(X, 1), "Filter": UPWARD}, paddings=[1, 1])
for setting in ("default", "pads", "channels last"):
    use(
        "depthwise_conv2d_transpose",
        setting,
        {"Input": LAST if setting == "channels last" else X, "Filter": saved(normal(4, 1, 3, 3))},
        groups=4,
        **UPWARDS[setting],
    )
use("conv2d_transpose", "groups", {"Input": X, "Filter": saved(normal(4, 3, 3, 3))}, groups=2)

OFFSET, MASK = normal(2, 18, 5, 7, seed=2), normal(2, 9, 5, 7, seed=3)
DEFORMED = {"Input": X, "Filter": FILTER, "Offset": OFFSET, "Mask": MASK}
use("deformable_conv", "default", DEFORMED, deformable_groups=1, groups=1, im2col_step=1)
use(
    "deformable_conv",
    "pads and strides",
    DEFORMED | {"Offset": normal(2, 18, 4, 5), "Mask": normal(2, 9, 4, 5)},
    deformable_groups=1,
    groups=1,
    im2col_step=1,
    strides=[2, 2],
    paddings=[1, 1],
)
use(
    "deformable_conv",
    "groups",
    DEFORMED | {"Filter": GROUPED, "Offset": normal(2, 36, 5, 7), "Mask": normal(2, 18, 5, 7)},
    deformable_groups=2,
    groups=2,
    im2col_step=1,
)
use(
    "deformable_conv",
    "dilations",
    DEFORMED | {"Offset": normal(2, 18, 3, 5), "Mask": normal(2, 9, 3, 5)},
    deformable_groups=1,
    groups=1,
    im2col_step=2,
    dilations=[2, 2],
)

POOLS: dict[str, Attributes] = {
    "default": {},
    "strides and pads": {"strides": [2, 2], "paddings": [1, 1]},
    "four pads": {"strides": [2, 2], "paddings": [1, 0, 0, 1]},
    "rounded up": {"strides": [2, 2], "ceil_mode": True},
    "rounded up, padded": {
        "ksize": [3, 3],
        "strides": [2, 2],
        "ceil_mode": True,
        "paddings": [1, 1],
    },
    "same": {"strides": [2, 2], "padding_algorithm": "SAME"},
    "valid": {"strides": [2, 2], "padding_algorithm": "VALID", "paddings": [1, 1]},
    "everything": {"global_pooling": True},
    "adaptive": {"adaptive": True},
    "adaptive to one": {"adaptive": True, "ksize": [1, 1]},
    "adaptive with strides": {"adaptive": True, "ksize": [6, 3], "strides": [3, 2]},
    "adaptive to everything": {"adaptive": True, "global_pooling": True, "strides": [2, 1]},
}
WINDOW: Attributes = {"ksize": [3, 2]}
for kind in ("avg", "max"):
    of_kind = WINDOW | {"pooling_type": kind}
    for setting, attributes in POOLS.items():
        use(
            "pool2d",
            f"{kind}, {setting}",
            {"X": fixed(X)},
            **of_kind | attributes,
        )
    use("pool2d", f"{kind}, open sizes", {"X": loose(X, 1)}, **of_kind)
    for setting in ("strides and pads", "everything", "adaptive"):
        use(
            "pool2d",
            f"{kind}, channels last, {setting}",
            {"X": fixed(LAST)},
            **of_kind | {"data_format": "NHWC"} | POOLS[setting],
        )
for setting in ("strides and pads", "four pads", "rounded up, padded", "same", "valid"):
    use(
        "pool2d",
        f"avg, inclusive, {setting}",
        {"X": fixed(X)},
        **WINDOW | {"pooling_type": "avg", "exclusive": False} | POOLS[setting],
    )

HALF: Attributes = {"align_corners": False, "align_mode": 0}
FROM_EDGE: Attributes = {"align_corners": False, "align_mode": 1}
CORNERS: Attributes = {"align_corners": True, "align_mode": 1}
for kind in ("nearest", "bilinear"):
    for version in ("", "_v2"):
        name = f"{kind}_interp{version}"
        half = HALF | {"interp_method": kind, "data_layout": "NCHW"}
        scale = [2.0, 1.5] if version else 2.0
        use(name, "size", {"X": X}, **half, out_h=5, out_w=13)
        use(name, "scale", {"X": loose(X, 1)}, **half, scale=scale)
        use(name, "aligned corners", {"X": X}, **half | CORNERS, out_h=5, out_w=13)
        use(name, "aligned corners, scale", {"X": X}, **half | CORNERS, scale=scale)
        use(name, "smaller", {"X": X}, **half, out_h=3, out_w=4)
        use(name, "channels last", {"X": LAST}, **half | {"data_layout": "NHWC"}, out_h=5, out_w=13)
        use(
            name,
            "OutSize in a parameter",
            {"X": X, "OutSize": saved(integers(5, 13))},
            **half,
            out_h=1,
            out_w=1,
        )
        use(name, "OutSize computed", {"X": X, "OutSize": fixed(integers(5, 13))}, **half)
        use(
            name,
            "SizeTensor",
            {"X": X, "SizeTensor": [fixed(integers(5)), saved(integers(13))]},
            **half,
            out_h=1,
            out_w=1,
        )
        use(
            name,
            "Scale in a parameter",
            {"X": X, "Scale": saved(np.array([2, 1.5] if version else [2], np.float32))},
            **half,
        )
        use(name, "scale before size", {"X": X}, **half, scale=scale, out_h=5, out_w=13)
    use(f"{kind}_interp_v2", "Scale computed", {"X": X, "Scale": fixed(real(2.0))}, **half)
    use(f"{kind}_interp_v2", "one pixel", {"X": X}, **half, out_h=1, out_w=1)
    use(
        f"{kind}_interp_v2",
        "one row, aligned corners",
        {"X": X},
        **half | CORNERS,
        out_h=1,
        out_w=4,
    )
for version in ("", "_v2"):
    use(
        f"bilinear_interp{version}",
        "from the edge",
        {"X": X},
        **FROM_EDGE,
        out_h=5,
        out_w=13,
        interp_method="bilinear",
    )
    use(
        f"bilinear_interp{version}",
        "from the edge, scale",
        {"X": X},
        **FROM_EDGE,
        scale=[1.7, 2.0] if version else 1.7,
        interp_method="bilinear",
    )

GRID = np.random.RandomState(5).uniform(-1.3, 1.3, (2, 5, 6, 2)).astype(np.float32)
for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        for aligned in (True, False):
            use(
                "grid_sampler",
                f"{mode}, {padding}, aligned {aligned}",
                {"X": X, "Grid": GRID},
                written_as="grid_sampler",
                mode=mode,
                padding_mode=padding,
                align_corners=aligned,
            )
use("grid_sampler", "default", {"X": X, "Grid": GRID}, written_as="grid_sample")
use(
    "grid_sampler",
    "border",
    {"X": X, "Grid": GRID},
    written_as="grid_sample",
    padding_mode="border",
    align_corners=False,
)
