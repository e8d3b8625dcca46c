"""Cases of operators that move elements: into another shape, together, apart."""

from __future__ import annotations

import numpy as np
from tests.importers.paddle.case import Case, normal, unary
from tests.importers.paddle.writers import Longs

IMAGE = normal(1, 2, 4, 7, 9)
MATRIX = normal(2, 3, 5)
FLAT = IMAGE[:, :, :1]

SHAPES = {
    "reshape2": unary(
        "reshape2",
        "reshape",
        lambda x: x.reshape(2, 28, 9),
        {"shape": [0, -1, 9]},
        {},
        x=IMAGE,
        arguments=[[0, -1, 9]],
    ),
    "transpose2": unary(
        "transpose2",
        "transpose",
        lambda x: x.transpose(0, 2, 3, 1),
        {"axis": [0, 2, 3, 1]},
        {"perm": [0, 2, 3, 1]},
        x=IMAGE,
    ),
    "flatten_contiguous_range": unary(
        "flatten_contiguous_range",
        "flatten",
        lambda x: x.reshape(2, 28, 9),
        {"start_axis": 1, "stop_axis": 2},
        x=IMAGE,
    ),
    "squeeze2": unary(
        "squeeze2", "squeeze", lambda x: x[:, :, 0], {"axes": [2]}, {}, x=FLAT, arguments=[[2]]
    ),
    "squeeze2 of a longer axis": unary(
        "squeeze2",
        "squeeze",
        lambda x: x[:, :, 0],
        {"axes": [1, 2]},
        {},
        x=FLAT,
        arguments=[[1, 2]],
    ),
    "squeeze2 of nothing": unary(
        "squeeze2", "squeeze", lambda x: x, {"axes": [1]}, {}, x=IMAGE, arguments=[[1]]
    ),
    "unsqueeze2": unary(
        "unsqueeze2",
        "unsqueeze",
        lambda x: x[None, :, :, None],
        {"axes": [-1, 0]},
        {},
        x=MATRIX,
        arguments=[[-1, 0]],
    ),
    "unsqueeze2, one axis after the other": unary(
        "unsqueeze2",
        "unsqueeze",
        lambda x: x[:, None, :, None],
        {"axes": [2, 1]},
        {},
        x=MATRIX,
        arguments=[[2, 1]],
    ),
    "expand_v2": unary(
        "expand_v2",
        "expand",
        lambda x: np.stack([x, x]),
        {"shape": [2, -1, 5]},
        {},
        x=MATRIX,
        arguments=[[2, -1, 5]],
    ),
    "slice": unary(
        "slice",
        "slice",
        lambda x: x[:, 1:3, 5:],
        {"axes": [1, 2], "starts": [1, -2], "ends": [3, 2**31 - 1], "decrease_axis": []},
        {"axes": Longs([1, 2]), "infer_flags": Longs([1, 1]), "decrease_axis": Longs()},
        x=IMAGE,
        arguments=[[1, -2], [3, 2**31 - 1]],
        slot="Input",
    ),
    "slice of one": unary(
        "slice",
        "slice",
        lambda x: x[:, 2],
        {"axes": [1], "starts": [2], "ends": [3], "decrease_axis": [1]},
        {"axes": Longs([1]), "infer_flags": Longs([1]), "decrease_axis": Longs([1])},
        x=IMAGE,
        arguments=[[2], [3]],
        slot="Input",
    ),
    "shape": unary("shape", "shape", lambda x: np.array(x.shape, np.int32), x=IMAGE, slot="Input"),
}

JOINING = {
    "concat": Case(
        inputs={"x": MATRIX, "y": MATRIX[:, :2]},
        parameters={},
        paddle2=("concat", {"X": ["x", "y", "x"]}, "Out", {"axis": -1}),
        paddle3=("concat", [["x", "y", "x"], [-1]], {}),
        expected=[np.concatenate([MATRIX, MATRIX[:, :2], MATRIX], -1)],
    ),
    "stack": Case(
        inputs={"x": MATRIX},
        parameters={"y": MATRIX + 1},
        paddle2=("stack", {"X": ["x", "y"]}, "Y", {"axis": 1}),
        paddle3=("stack", [["x", "y"]], {"axis": 1}),
        expected=[np.stack([MATRIX, MATRIX + 1], 1)],
    ),
    "split in sections": unary(
        "split",
        "split",
        lambda x: [x[:, :1], x[:, 1:]],
        {"axis": 1, "sections": [1, -1], "num": 0},
        {},
        x=IMAGE,
        arguments=[[1, -1], [1]],
    ),
    "split in equal parts": unary(
        "split",
        "split_with_num",
        lambda x: [x[..., :3], x[..., 3:6], x[..., 6:]],
        {"axis": 3, "sections": [], "num": 3},
        {"num": 3},
        x=IMAGE,
        arguments=[[3]],
    ),
    "gather": Case(
        inputs={"x": MATRIX},
        parameters={"i": np.array([2, 0])},
        paddle2=("gather", {"X": "x", "Index": "i"}, "Out", {"axis": 1}),
        paddle3=("gather", ["x", "i", [1]], {}),
        expected=[MATRIX[:, [2, 0]]],
    ),
}

CASES = SHAPES | JOINING
