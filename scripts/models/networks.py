"""Write small networks, built as their public definitions have them, with what Paddle computes.

Run inside an oracle environment: python networks.py NAME DIRECTORY

Each is a folder of `inference.*` and `oracle-INDEX.npz`. Widths and depths are small; operators,
their settings and the open sizes are those of the real ones.
"""
# mypy: ignore-errors
# ruff: noqa: B905 - Paddle translates `zip` without the argument only

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import oracle
import paddle
import paddle.nn.functional as F
from network import pictures, prepare
from paddle import _C_ops, nn
from paddle.static import InputSpec
from paddle.vision import ops

IS_PADDLE3 = paddle.__version__.startswith("3")


@dataclass(frozen=True)
class Network:
    """A network and what it is run on.

    Attributes:
        build: makes the layer.
        specs: name, shape (-1: any) and element type of each input.
        calls: the inputs of each run.
    """

    build: Callable[[], nn.Layer]
    specs: Sequence[tuple[str, list[int], str]]
    calls: Sequence[Sequence[np.ndarray]]


def main(directory: Path) -> None:
    """Write a folder for each network."""
    for name, network in NETWORKS.items():
        folder = directory / name
        folder.mkdir()
        paddle.seed(0)
        net = network.build()
        prepare(net, *network.calls[-1])
        specs = [InputSpec(shape, dtype, name) for name, shape, dtype in network.specs]
        stem = folder / "inference"
        paddle.jit.save(net, str(stem), input_spec=specs)
        stem.with_suffix(".pdiparams.info").unlink(missing_ok=True)
        (program,) = (*folder.glob("*.pdmodel"), *folder.glob("*.json"))
        predictor = oracle.load([program, stem.with_suffix(".pdiparams")])
        names = [name for name, _, _ in network.specs]
        for index, arrays in enumerate(network.calls):
            given = dict(zip(names, arrays, strict=True))
            made = oracle.run(predictor, given)
            reals = [one for one in made if one.dtype.kind == "f"]
            if not all(np.isfinite(one).all() and one.size and np.ptp(one) > 0 for one in reals):
                raise ValueError(f"{name}: outputs {[one.shape for one in made]} are degenerate")
            stored = {f"input:{name}": array for name, array in given.items()}
            stored |= {f"output:{place}": array for place, array in enumerate(made)}
            np.savez_compressed(folder / f"oracle-{index}.npz", **stored)


class ConvNorm(nn.Sequential):
    """A convolution, normalization and an activation."""

    def __init__(self, before, after, size=3, stride=1, groups=1, act=nn.Swish):
        layers = [
            nn.Conv2D(
                before, after, size, stride, padding=size // 2, groups=groups, bias_attr=False
            ),
            nn.BatchNorm2D(after),
        ]
        super().__init__(*layers, *([act()] if act else []))


class EffectiveAttention(nn.Layer):
    """Effective squeeze and excitation."""

    def __init__(self, width, act="hardsigmoid"):
        super().__init__()
        self.fc = nn.Conv2D(width, width, 1)
        self.act = getattr(F, act)

    def forward(self, x):
        return x * self.act(self.fc(x.mean((2, 3), keepdim=True)))


def suppressed(boxes, scores, **settings):
    """Multi-class suppression, appended as each Paddle does."""
    order = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized")
    if IS_PADDLE3 or paddle.in_dynamic_mode():
        arguments = [settings[name] for name in (*order, "nms_eta", "background_label")]
        found, _, counts = _C_ops.multiclass_nms3(boxes, scores, None, *arguments)
        return found, counts
    helper = paddle.base.layer_helper.LayerHelper("multiclass_nms3")
    made = [
        helper.create_variable_for_type_inference(dtype) for dtype in ("float32", "int32", "int32")
    ]
    helper.append_op(
        type="multiclass_nms3",
        inputs={"BBoxes": boxes, "Scores": scores},
        attrs=settings,
        outputs={"Out": made[0], "Index": made[1], "NmsRoisNum": made[2]},
    )
    return made[0], made[2]


class Detector(nn.Layer):
    """PP-YOLOE: CSPRepResNet stages, a head of distributions over distances, and suppression.

    Source: Xu et al., "PP-YOLOE: An evolved version of YOLO", https://arxiv.org/abs/2203.16250.
    """

    def __init__(self, classes=3, bins=8):
        super().__init__()
        self.classes, self.bins = classes, bins
        self.stem = nn.Sequential(ConvNorm(3, 8, 3, 2), ConvNorm(8, 12, 3, 2))
        self.stages = nn.LayerList([ConvNorm(12, 16, 3, 2), ConvNorm(16, 24, 3, 2)])
        self.lateral = ConvNorm(24, 16, 1)
        self.attention = nn.LayerList([EffectiveAttention(16), EffectiveAttention(24)])
        self.fuse = ConvNorm(32, 16, 1)
        self.scores = nn.LayerList(
            [nn.Conv2D(16, classes, 3, padding=1), nn.Conv2D(24, classes, 3, padding=1)]
        )
        self.distances = nn.LayerList(
            [nn.Conv2D(16, 4 * bins, 3, padding=1), nn.Conv2D(24, 4 * bins, 3, padding=1)]
        )
        self.project = nn.Conv2D(bins, 1, 1, bias_attr=False)

    def forward(self, image, scale_factor):
        first = self.stages[0](self.stem(image))
        second = self.stages[1](first)
        above = F.interpolate(self.lateral(second), scale_factor=2.0)
        features = [self.fuse(paddle.concat([above, first], 1)), second]
        scores, boxes = [], []
        for level, (feature, stride) in enumerate(zip(features, (8, 16))):
            feature = self.attention[level](feature) + feature
            height, width = paddle.shape(feature)[2], paddle.shape(feature)[3]
            places = paddle.meshgrid(
                paddle.arange(height, dtype="float32") + 0.5,
                paddle.arange(width, dtype="float32") + 0.5,
            )
            centres = paddle.stack([places[1], places[0]], -1).reshape([-1, 2])
            count = height * width
            marks = F.sigmoid(self.scores[level](feature)).reshape([-1, self.classes, count])
            moves = self.distances[level](feature)
            moves = moves.reshape([-1, 4, self.bins, count]).transpose([0, 2, 3, 1])
            moves = self.project(F.softmax(moves, 1)).squeeze(1)
            corner, other = paddle.split(moves, 2, -1)
            own = paddle.concat([centres - F.relu(corner), centres + F.relu(other)], -1)
            scores.append(marks)
            boxes.append(own * stride)
        height, width = paddle.split(scale_factor, 2, -1)
        scale = paddle.concat([width, height, width, height], -1).reshape([-1, 1, 4])
        return suppressed(
            paddle.concat(boxes, 1) / scale,
            paddle.concat(scores, -1),
            score_threshold=0.75,
            nms_top_k=50,
            keep_top_k=20,
            nms_threshold=0.6,
            normalized=True,
            nms_eta=1.0,
            background_label=-1,
        )


class Shuffle(nn.Layer):
    """A block of PP-PicoDet's enhanced ShuffleNet.

    Source: Yu et al., "PP-PicoDet", https://arxiv.org/abs/2111.00902.
    """

    def __init__(self, width):
        super().__init__()
        self.first = ConvNorm(width // 2, width // 2, 1, act=nn.Hardswish)
        self.deep = ConvNorm(width // 2, width // 2, 3, groups=width // 2, act=None)
        self.attention = EffectiveAttention(width)
        self.last = ConvNorm(width, width // 2, 1, act=nn.Hardswish)

    def forward(self, x):
        size = paddle.shape(x)
        channels = x.shape[1]
        mixed = x.reshape([size[0], 2, channels // 2, size[2], size[3]]).transpose([0, 2, 1, 3, 4])
        mixed = mixed.reshape([size[0], channels, size[2], size[3]])
        left, right = paddle.split(mixed, 2, 1)
        right = self.first(right)
        both = self.attention(paddle.concat([right, self.deep(right)], 1))
        return paddle.concat([left, self.last(both)], 1)


class SmallDetector(nn.Layer):
    """PP-PicoDet with matrix suppression."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(ConvNorm(3, 16, 3, 2, act=nn.Hardswish), nn.MaxPool2D(3, 2, 1))
        self.blocks = nn.Sequential(Shuffle(16), Shuffle(16))
        self.head = nn.Conv2D(16, 4 + 3, 5, padding=2)

    def forward(self, image):
        made = self.head(self.blocks(self.stem(image))).flatten(2).transpose([0, 2, 1])
        corner = F.sigmoid(made[:, :, :2]) * 40
        boxes = paddle.concat([corner, corner + F.softplus(made[:, :, 2:4]) * 8], -1)
        scores = F.sigmoid(made[:, :, 4:]).transpose([0, 2, 1])
        return ops.matrix_nms(
            boxes,
            scores,
            0.4,
            0.1,
            30,
            10,
            use_gaussian=True,
            background_label=-1,
            return_index=True,
        )


class TwoStages(nn.Layer):
    """Faster R-CNN: proposals, their division over levels, and pooling of regions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(3, 8, 3, 2, act=nn.ReLU), ConvNorm(8, 8, 3, 2, act=nn.ReLU)
        )
        self.below = ConvNorm(8, 8, 3, 2, act=nn.ReLU)
        self.scores, self.deltas = nn.Conv2D(8, 3, 1), nn.Conv2D(8, 12, 1)
        self.classify = nn.Linear(8 * 4, 5)
        side = np.array([24.0, 40.0, 64.0])
        rows, columns, sides = np.meshgrid(
            np.arange(8) * 8 + 4, np.arange(8) * 8 + 4, side, indexing="ij"
        )
        anchors = np.stack(
            [columns - sides / 2, rows - sides / 2, columns + sides / 2, rows + sides / 2], -1
        )
        self.register_buffer("anchors", paddle.to_tensor(anchors.astype(np.float32)))
        self.register_buffer("variances", paddle.ones([8, 8, 3, 4]))

    def forward(self, image, im_shape):
        fine = self.body(image)
        coarse = self.below(fine)
        regions, marks, counts = ops.generate_proposals(
            F.sigmoid(self.scores(coarse)), 0.1 * self.deltas(coarse), im_shape, self.anchors,
            self.variances, pre_nms_top_n=60, post_nms_top_n=12, nms_thresh=0.6, min_size=4.0,
            return_rois_num=True,
        )  # fmt: skip
        divided, restore, numbers = ops.distribute_fpn_proposals(
            regions, 2, 3, 2, 40, rois_num=counts
        )
        pooled = [
            ops.roi_align(feature, own, count, 2, 1 / stride, 2, aligned=True)
            for feature, own, count, stride in zip((fine, coarse), divided, numbers, (4, 8))
        ]
        whole = paddle.gather(paddle.concat(pooled), restore)
        return regions, marks, counts, F.softmax(self.classify(whole.flatten(1)))


class DeformableAttention(nn.Layer):
    """Attention to a few places of two levels of features, as Deformable DETR has it."""

    def __init__(self, width, heads=2, points=2, levels=2):
        super().__init__()
        self.width, self.heads, self.points, self.levels = width, heads, points, levels
        self.offsets = nn.Linear(width, heads * levels * points * 2)
        self.weights = nn.Linear(width, heads * levels * points)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, query, references, memory, shapes):
        count, length = paddle.shape(query)[0], query.shape[1]
        value = self.value(memory).reshape([count, -1, self.heads, self.width // self.heads])
        places = self.offsets(query).reshape(
            [count, length, self.heads, self.levels, self.points, 2]
        )
        weights = F.softmax(
            self.weights(query).reshape([count, length, self.heads, self.levels * self.points])
        )
        found, begin = [], 0
        for level, (height, width) in enumerate(shapes):
            own = value[:, begin : begin + height * width].transpose([0, 2, 3, 1])
            own = own.reshape([-1, self.width // self.heads, height, width])
            begin += height * width
            moved = references[:, :, None, None, :2] + 0.1 * places[:, :, :, level]
            grid = (2 * moved - 1).transpose([0, 2, 1, 3, 4]).flatten(0, 1)
            found.append(F.grid_sample(own, grid, "bilinear", "zeros", align_corners=False))
        sampled = paddle.stack(found, -2).flatten(-2)
        weights = weights.transpose([0, 2, 1, 3]).reshape(
            [-1, 1, length, self.levels * self.points]
        )
        made = (sampled * weights).sum(-1).reshape([count, self.width, length])
        return self.output(made.transpose([0, 2, 1]))


class TransformerDetector(nn.Layer):
    """RT-DETR: an encoder over the coarsest level, the best places as queries, and a decoder.

    Source: Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection",
    https://arxiv.org/abs/2304.08069.
    """

    def __init__(self, width=16, classes=3, queries=6):
        super().__init__()
        self.width, self.queries, self.classes = width, queries, classes
        self.stem = nn.Sequential(ConvNorm(3, 8, 3, 4), ConvNorm(8, width, 3, 2))
        self.down = ConvNorm(width, width, 3, 2)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, activation="gelu")
        self.proposals = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))
        self.first_scores, self.first_boxes = nn.Linear(width, classes), nn.Linear(width, 4)
        self.own = nn.MultiHeadAttention(width, 2)
        self.cross = DeformableAttention(width)
        self.norms = nn.LayerList([nn.LayerNorm(width) for _ in range(3)])
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, width))
        self.place = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, width))
        self.scores, self.boxes = nn.Linear(width, classes), nn.Linear(width, 4)
        step = np.arange(width // 4) / (width // 4)
        rows, columns = np.meshgrid(np.arange(4), np.arange(4), indexing="ij")
        angles = [axis.reshape(-1, 1) / 10000**step for axis in (columns, rows)]
        waves = np.concatenate([f(a) for a in angles for f in (np.sin, np.cos)], 1)
        self.register_buffer("waves", paddle.to_tensor(waves[None].astype(np.float32)))

    def forward(self, image, im_shape):
        fine = self.stem(image)
        coarse = self.down(fine).flatten(2).transpose([0, 2, 1])
        coarse = self.encoder(coarse + self.waves)
        memory = paddle.concat([fine.flatten(2).transpose([0, 2, 1]), coarse], 1)
        proposed = self.proposals(memory)
        marks = self.first_scores(proposed)
        _, best = paddle.topk(marks.max(-1), self.queries, axis=1)
        count = paddle.shape(memory)[0]
        rows = paddle.arange(end=count).unsqueeze(-1).tile([1, self.queries]).astype(best.dtype)
        places = paddle.stack([rows, best], -1)
        target = paddle.gather_nd(proposed, places)
        references = F.sigmoid(paddle.gather_nd(self.first_boxes(proposed), places))
        position = self.place(references)
        query = target + position
        target = self.norms[0](target + self.own(query, query, target))
        seen = self.cross(target + position, references, memory, [(8, 8), (4, 4)])
        target = self.norms[1](target + seen)
        target = self.norms[2](target + self.feed(target))
        clipped = references.clip(0.0, 1.0)
        inverse = paddle.log(clipped.clip(min=1e-5) / (1 - clipped).clip(min=1e-5))
        boxes = F.sigmoid(self.boxes(target) + inverse)
        centre, size = paddle.split(boxes, 2, -1)
        corners = paddle.concat([centre - 0.5 * size, centre + 0.5 * size], -1)
        scale = paddle.flip(im_shape, [1]).tile([1, 2]).unsqueeze(1)
        scores = F.sigmoid(self.scores(target))
        marks, order = paddle.topk(scores.flatten(1), 5, axis=-1)
        labels = order % self.classes
        index = order // self.classes
        found = paddle.take_along_axis(corners * scale, index.unsqueeze(-1).tile([1, 1, 4]), 1)
        table = [labels.unsqueeze(-1).astype("float32"), marks.unsqueeze(-1), found]
        return paddle.concat(table, -1)


class TableStructure(nn.Layer):
    """SLANet: a decoder with attention that writes step after step into what it has made.

    Source: Li et al., "PP-StructureV2", https://arxiv.org/abs/2210.05391.
    """

    def __init__(self, width=8, hidden=12, symbols=7, steps=5):
        super().__init__()
        self.hidden, self.symbols, self.steps = hidden, symbols, steps
        self.body = nn.Sequential(
            ConvNorm(3, width, 3, 4, act=nn.Hardswish), ConvNorm(width, width, 3, 2)
        )
        self.to_score = nn.Linear(width, hidden, bias_attr=False)
        self.from_hidden = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias_attr=False)
        self.cell = nn.GRUCell(width + symbols, hidden)
        self.structure = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, symbols))
        self.place = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, 4))

    def forward(self, image):
        features = self.body(image).flatten(2).transpose([0, 2, 1])
        count = paddle.shape(features)[0]
        hidden = paddle.zeros([count, self.hidden])
        structure = paddle.zeros([count, self.steps, self.symbols])
        places = paddle.zeros([count, self.steps, 4])
        before = paddle.zeros([count], "int32")
        last = paddle.to_tensor(self.steps)
        i = 0
        while i < last:
            shown = F.one_hot(before, self.symbols)
            mixed = self.to_score(features) + self.from_hidden(hidden).unsqueeze(1)
            weights = F.softmax(self.score(paddle.tanh(mixed)), 1).transpose([0, 2, 1])
            context = paddle.matmul(weights, features).squeeze(1)
            _, hidden = self.cell(paddle.concat([context, shown], 1), hidden)
            step = self.structure(hidden)
            before = step.argmax(1, dtype="int32")
            structure[:, i, :] = step
            places[:, i, :] = self.place(hidden)
            i += 1
        return F.softmax(structure, -1), F.sigmoid(places)


class Language(nn.Layer):
    """ERNIE: embeddings, a transformer under a mask of the padding, and a pooler.

    With `bbox`, the embeddings of places on a page are added, as LayoutLM has them.
    Sources: Sun et al., "ERNIE 2.0", https://arxiv.org/abs/1907.12412; Xu et al., "LayoutLM",
    https://arxiv.org/abs/1912.13318.
    """

    def __init__(self, width=16, with_places=False):
        super().__init__()
        self.words, self.positions = nn.Embedding(40, width, padding_idx=0), nn.Embedding(32, width)
        self.types, self.tasks = nn.Embedding(3, width), nn.Embedding(3, width)
        self.with_places = with_places
        if with_places:
            self.across, self.down = nn.Embedding(64, width), nn.Embedding(64, width)
            self.heights, self.widths = nn.Embedding(64, width), nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 32, 0.0, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pooler = nn.Linear(width, width)
        self.classify = nn.Linear(width, 2)

    def forward(self, input_ids, token_type_ids, bbox=None):
        mask = (input_ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        ones = paddle.ones_like(input_ids, dtype="int64")
        positions = paddle.cumsum(ones, axis=1) - ones
        embedded = self.words(input_ids) + self.positions(positions) + self.types(token_type_ids)
        embedded = embedded + self.tasks(paddle.zeros_like(input_ids))
        if self.with_places:
            left, top, right, bottom = (bbox[:, :, side] for side in range(4))
            embedded = embedded + self.across(left) + self.down(top)
            embedded = embedded + self.across(right) + self.down(bottom)
            embedded = embedded + self.heights(bottom - top) + self.widths(right - left)
        encoded = self.encoder(self.norm(embedded), mask)
        pooled = paddle.tanh(self.pooler(encoded[:, 0]))
        return encoded, self.classify(pooled)


class PlacedLanguage(Language):
    """The same with places."""

    def __init__(self):
        super().__init__(with_places=True)

    def forward(self, input_ids, token_type_ids, bbox):
        return Language.forward(self, input_ids, token_type_ids, bbox)


class Segmenter(nn.Layer):
    """SegFormer: overlapping patches, attention to fewer places, and a decoder of linear layers.

    Source: Xie et al., "SegFormer", https://arxiv.org/abs/2105.15203.
    """

    def __init__(self, classes=4):
        super().__init__()
        self.patches = nn.LayerList([nn.Conv2D(3, 8, 7, 4, 3), nn.Conv2D(8, 12, 3, 2, 1)])
        self.norms = nn.LayerList([nn.LayerNorm(8), nn.LayerNorm(12)])
        self.queries = nn.LayerList([nn.Linear(8, 8), nn.Linear(12, 12)])
        self.pairs = nn.LayerList([nn.Linear(8, 16), nn.Linear(12, 24)])
        self.fewer = nn.LayerList([nn.Conv2D(8, 8, 2, 2), nn.Conv2D(12, 12, 1)])
        self.mixed = nn.LayerList(
            [nn.Conv2D(16, 16, 3, 1, 1, groups=16), nn.Conv2D(24, 24, 3, 1, 1, groups=24)]
        )
        self.wider = nn.LayerList([nn.Linear(8, 16), nn.Linear(12, 24)])
        self.narrower = nn.LayerList([nn.Linear(16, 8), nn.Linear(24, 12)])
        self.unify = nn.LayerList([nn.Linear(8, 8), nn.Linear(12, 8)])
        self.fuse, self.last = ConvNorm(16, 8, 1, act=nn.ReLU), nn.Conv2D(8, classes, 1)

    def forward(self, x):
        found, image = [], x
        for i in range(2):
            x = self.patches[i](x)
            height, width = paddle.shape(x)[2], paddle.shape(x)[3]
            channels = x.shape[1]
            tokens = self.norms[i](x.flatten(2).transpose([0, 2, 1]))
            small = self.fewer[i](tokens.transpose([0, 2, 1]).reshape([0, channels, height, width]))
            small = small.flatten(2).transpose([0, 2, 1])
            heads = 2
            query = self.queries[i](tokens).reshape([0, -1, heads, channels // heads])
            pair = self.pairs[i](small).reshape([0, -1, 2, heads, channels // heads])
            pair = pair.transpose([2, 0, 3, 1, 4])
            query = query.transpose([0, 2, 1, 3])
            weights = F.softmax(query @ pair[0].transpose([0, 1, 3, 2]) * channels**-0.5, -1)
            tokens = tokens + (weights @ pair[1]).transpose([0, 2, 1, 3]).flatten(2)
            wide = (
                self.wider[i](tokens).transpose([0, 2, 1]).reshape([0, 2 * channels, height, width])
            )
            wide = F.gelu(self.mixed[i](wide).flatten(2).transpose([0, 2, 1]))
            tokens = tokens + self.narrower[i](wide)
            x = tokens.transpose([0, 2, 1]).reshape([0, channels, height, width])
            found.append(self.unify[i](tokens).transpose([0, 2, 1]).reshape([0, 8, height, width]))
        size = paddle.shape(found[0])[2:]
        upper = F.interpolate(found[1], size, mode="bilinear", align_corners=False)
        made = self.last(self.fuse(paddle.concat([upper, found[0]], 1)))
        made = F.interpolate(made, paddle.shape(image)[2:], mode="bilinear", align_corners=False)
        return paddle.argmax(made, 1, dtype="int32"), F.softmax(made, 1)


class LightSegmenter(nn.Layer):
    """PP-LiteSeg: pyramid pooling and unified attention fusion.

    Source: Peng et al., "PP-LiteSeg", https://arxiv.org/abs/2204.02681.
    """

    def __init__(self, classes=3):
        super().__init__()
        self.low = ConvNorm(3, 8, 3, 4, act=nn.ReLU)
        self.high = ConvNorm(8, 12, 3, 2, act=nn.ReLU)
        self.pools = nn.LayerList(
            [
                nn.Sequential(nn.AdaptiveAvgPool2D(size), ConvNorm(12, 8, 1, act=nn.ReLU))
                for size in (1, 2, 4)
            ]
        )
        self.out = ConvNorm(8, 8, 3, act=nn.ReLU)
        self.attention = nn.Sequential(
            ConvNorm(4, 2, 3, act=nn.ReLU), nn.Conv2D(2, 1, 3, padding=1)
        )
        self.head = nn.Conv2D(8, classes, 1)

    def forward(self, x):
        low = self.low(x)
        high = self.high(low)
        size = paddle.shape(high)[2:]
        pooled = [F.interpolate(pool(high), size, mode="bilinear") for pool in self.pools]
        context = self.out(pooled[0] + pooled[1] + pooled[2])
        context = F.interpolate(context, paddle.shape(low)[2:], mode="bilinear")
        stats = [
            part
            for f in (low, context)
            for part in (f.mean(1, keepdim=True), f.max(1, keepdim=True))
        ]
        share = F.sigmoid(self.attention(paddle.concat(stats, 1)))
        made = self.head(low * share + context * (1 - share))
        return F.interpolate(made, paddle.shape(x)[2:], mode="bilinear")


class Reader(nn.Layer):
    """CRNN: a convolution over lines of text, an LSTM in both directions, and a classifier."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(3, 8, 3, (2, 1), act=nn.Hardswish), nn.MaxPool2D((8, 2), (8, 2))
        )
        self.lstm = nn.LSTM(8, 6, direction="bidirectional", num_layers=2)
        self.gru = nn.GRU(12, 6)
        self.classify = nn.Linear(6, 9)

    def forward(self, x):
        columns = self.body(x).squeeze(2).transpose([0, 2, 1])
        hidden, _ = self.lstm(columns)
        hidden, last = self.gru(hidden)
        return F.softmax(self.classify(hidden), 2), last


class Unwarper(nn.Layer):
    """UVDoc: dilated convolutions, a grid of places, and the picture resampled by it.

    Source: Verhoeven et al., "UVDoc", https://arxiv.org/abs/2302.02887.
    """

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2D(3, 6, 5, 4, 2, padding_mode="reflect"), nn.BatchNorm2D(6), nn.ReLU()
        )
        self.dilated = nn.LayerList(
            [nn.Conv2D(6, 6, 3, padding=rate, dilation=rate) for rate in (1, 2, 3)]
        )
        self.bridge = nn.Sequential(nn.Conv2D(18, 6, 1), nn.PReLU())
        self.grid = nn.Conv2D(6, 2, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        feature = self.down(x)
        found = paddle.concat([layer(feature) for layer in self.dilated], 1)
        grid = paddle.tanh(self.grid(self.bridge(found)))
        grid = F.interpolate(grid, paddle.shape(x)[2:], mode="bilinear", align_corners=True)
        return F.grid_sample(x, grid.transpose([0, 2, 3, 1]), align_corners=True), grid


class Classifier(nn.Layer):
    """PP-HGNet: a stem of two branches, affine blocks after activations, and wide fusions."""

    def __init__(self):
        super().__init__()
        self.first, self.second = ConvNorm(3, 8, 3, 2, act=nn.ReLU), ConvNorm(8, 4, 2, act=nn.ReLU)
        self.third = ConvNorm(4, 8, 2, act=nn.ReLU)
        self.pool = nn.MaxPool2D(2, 1, ceil_mode=True)
        self.merge = ConvNorm(16, 12, 3, 2, act=nn.ReLU)
        self.layers = nn.LayerList([ConvNorm(12, 12, 3, act=nn.ReLU) for _ in range(3)])
        self.squeeze = nn.Sequential(
            ConvNorm(48, 12, 1, act=nn.ReLU), EffectiveAttention(12, "sigmoid")
        )
        self.scale = self.create_parameter([1])
        self.bias = self.create_parameter([1], is_bias=True)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2D(1), nn.Conv2D(12, 16, 1), nn.ReLU(), nn.Dropout(0.2)
        )
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = F.pad(self.first(x), [0, 1, 0, 1])
        aside = self.third(F.pad(self.second(x)[:, :, :-1, :-1], [0, 1, 0, 1])[:, :, :-1, :-1])
        pooled = self.pool(x)
        x = self.merge(
            paddle.concat([pooled, aside[:, :, : pooled.shape[2], : pooled.shape[3]]], 1)
        )
        found = [x]
        for layer in self.layers:
            x = self.scale * layer(x) + self.bias
            found.append(x)
        x = self.squeeze(paddle.concat(found, 1)) + found[0]
        return F.softmax(self.fc(self.head(x).flatten(1)))


def whole(*shape: int, seed: int, low: int = 0, high: int = 40) -> np.ndarray:
    """Return seeded int64 numbers."""
    return np.random.RandomState(seed).randint(low, high, shape).astype(np.int64)


def places(*shape: int, seed: int) -> np.ndarray:
    """Return boxes [..., 4] of whole numbers below 64, the lesser corner first."""
    corners = np.sort(whole(*shape, 2, 2, seed=seed, high=64), -2)
    return corners.reshape(*shape, 4)


IMAGE = ("image", [-1, 3, -1, -1], "float32")
FIXED = ("image", [-1, 3, 64, 64], "float32")
X = ("x", [-1, 3, -1, -1], "float32")
IDS = [("input_ids", [-1, -1], "int64"), ("token_type_ids", [-1, -1], "int64")]
ONE, TWO = pictures(1, 64, 1), pictures(2, 64, 2)
SCALES = np.array([[1.5, 2]], np.float32), np.array([[1, 1], [0.5, 2]], np.float32)
SHAPES = np.array([[64, 60]], np.float32), np.array([[64, 64], [50, 60]], np.float32)
TEXTS = (
    [whole(1, 7, seed=1), whole(1, 7, seed=2, high=3)],
    [whole(3, 9, seed=3), whole(3, 9, seed=4, high=3)],
)

NETWORKS = {
    "ernie": Network(Language, IDS, TEXTS),
    "faster_rcnn": Network(
        TwoStages,
        [FIXED, ("im_shape", [-1, 2], "float32")],
        [[ONE, SHAPES[0]], [TWO, SHAPES[1]]],
    ),
    "hgnet": Network(Classifier, [FIXED], [[ONE], [TWO]]),
    "layoutlm": Network(
        PlacedLanguage,
        [*IDS, ("bbox", [-1, -1, 4], "int64")],
        [[*TEXTS[0], places(1, 7, seed=5)], [*TEXTS[1], places(3, 9, seed=6)]],
    ),
    "picodet": Network(SmallDetector, [FIXED], [[ONE], [TWO]]),
    "pp_liteseg": Network(LightSegmenter, [X], [[ONE], [pictures(1, 96, 3)]]),
    "ppyoloe": Network(
        Detector,
        [IMAGE, ("scale_factor", [-1, 2], "float32")],
        [[ONE, SCALES[0]], [TWO, SCALES[1]]],
    ),
    "reader": Network(
        Reader, [("x", [-1, 3, 16, -1], "float32")], [[ONE[:, :, :16]], [TWO[:, :, :16, :40]]]
    ),
    "rt_detr": Network(
        TransformerDetector,
        [FIXED, ("im_shape", [-1, 2], "float32")],
        [[ONE, SHAPES[0]], [TWO, SHAPES[1]]],
    ),
    "segformer": Network(Segmenter, [X], [[ONE], [pictures(1, 96, 3)]]),
    "slanet": Network(TableStructure, [FIXED], [[ONE], [TWO]]),
    "uvdoc": Network(Unwarper, [X], [[ONE], [pictures(1, 96, 3)]]),
}


if __name__ == "__main__":
    main(Path(sys.argv[2]))
