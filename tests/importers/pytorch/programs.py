"""Exported programs in files, and damage to them."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tests.importers.pytorch.modules import MODULES, SIZES

MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
SAVED = ("Conv2d", "LSTMCell", "TransformerEncoderLayer")


def saved(name: str) -> bytes:
    """Return the file of an exported module with dynamic sizes."""
    import torch

    case = MODULES[name]
    shapes = tuple(dict.fromkeys(axes, torch.export.Dim.AUTO) for axes in case.dynamic_shapes())
    program = torch.export.export(case.module(), case.tensors(SIZES[0]), dynamic_shapes=shapes)
    return save(program)


def save(program: Any) -> bytes:
    """Return the file of an exported program."""
    import torch

    content = io.BytesIO()
    torch.export.save(program, content)
    return content.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    """Return what an archive holds, by path below its folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {
            entry.filename.partition("/")[2]: archive.read(entry) for entry in archive.infolist()
        }


def archive(content: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as file:
        for name, data in content.items():
            file.writestr(f"model/{name}", data)
    return written.getvalue()


def edited(content: bytes, name: str, edit: Callable[[Any], None]) -> bytes:
    """Return an archive with a JSON document that a function has changed."""
    inside = members(content)
    document = json.loads(inside[name])
    edit(document)
    inside[name] = json.dumps(document).encode()
    return archive(inside)


def damaged(content: bytes, seed: int) -> bytes:
    """Return an archive with random damage: to its bytes, or to a value of a document."""
    draw = random.Random(seed)
    kind = draw.choice(["bytes", "cut", "member", "text", "value", "value", "value"])
    if kind == "bytes":
        changed = bytearray(content)
        for _ in range(draw.randint(1, 20)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    if kind == "cut":
        return content[: draw.randrange(len(content))]
    inside = members(content)
    name = draw.choice(sorted(inside))
    if kind == "member":
        if draw.random() < 0.5:
            del inside[name]
        else:
            inside[name] = draw.randbytes(draw.randint(0, 100))
        return archive(inside)
    name = draw.choice([MODEL, MODEL, WEIGHTS])
    if kind == "text":
        text = bytearray(inside[name])
        text[draw.randrange(len(text))] = draw.randrange(32, 127)
        return archive({**inside, name: bytes(text)})
    document = json.loads(inside[name])
    _change_value(document, draw)
    return archive({**inside, name: json.dumps(document).encode()})


def _change_value(document: Any, draw: random.Random) -> None:
    """Replace or remove a random value at a random depth."""
    containers = list(_containers(document))
    container, key = draw.choice(containers)
    others = [draw.choice(containers) for _ in range(2)]
    values: list[Any] = [
        *(None, True, -1, 0, 2**31, 2**62, -(2**63), 1e300, "", "x", "s0 ** s0", [], {}),
        *(deepcopy(each[which]) for each, which in others),
    ]
    if isinstance(container, dict) and draw.random() < 0.1:
        del container[key]
    else:
        container[key] = draw.choice(values)


def _containers(document: Any) -> Any:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield document, key
        if isinstance(value, dict | list):
            yield from _containers(value)
