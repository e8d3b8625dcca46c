"""An HTML page in one file: data, styles and scripts are in it, and nothing is fetched."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from crosschip.ir.text import legible

_FOLDER = Path(__file__).parent

_SCRIPTS = (
    "graph.js",
    "layering.js",
    "layout.js",
    "painter.js",
    "view.js",
    "panel.js",
    "timeline.js",
    "main.js",
)
"""The scripts in the order in which they refer to each other."""


def page(title: str, data: Mapping[str, Any]) -> str:
    """Return an HTML page that shows a placed model.

    The page's security policy admits its own script only, by its digest, and no request.

    Args:
        title: the title of the page.
        data: the content as JSON values.
    """
    script = '"use strict";\n' + "\n".join(_text(name) for name in _SCRIPTS)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": escape(legible(title)),
        "style": _text("page.css"),
        "data": _json_in_html(data),
        "script": script,
    }
    pieces = _text("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _json_in_html(data: Mapping[str, Any]) -> str:
    """Return JSON that may stand in a script element: it has no `<`, and is in ASCII."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
