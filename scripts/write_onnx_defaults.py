"""Writes the defaults of the attributes of ONNX's standard operators, out of ONNX's schemas.

python scripts/write_onnx_defaults.py
"""

from __future__ import annotations

import json
from pathlib import Path

from onnx import defs, helper

TARGET = Path(__file__).parents[1] / "src" / "crosschip" / "importers" / "onnx" / "defaults.json"


def main() -> None:
    """Write the file: by operator and version, the defaults of the attributes that have one."""
    found: dict[str, dict[int, dict[str, object]]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, {})[schema.since_version] = _defaults(schema)
    lines = [
        f"  {json.dumps(name)}: {json.dumps(dict(sorted(versions.items())))}"
        for name, versions in sorted(found.items())
        if any(versions.values())
    ]
    newest = f'{{"opset": {defs.onnx_opset_version()}, "operators": {{\n'
    TARGET.write_text(newest + ",\n".join(lines) + "\n}}\n", "utf-8")


def _defaults(schema: defs.OpSchema) -> dict[str, object]:
    """The values, as JSON has them; all texts of schemas are UTF-8."""
    attributes = [(name, attribute.default_value) for name, attribute in schema.attributes.items()]
    return {
        name: _plain(helper.get_attribute_value(value))
        for name, value in sorted(attributes)
        if value.type
    }


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    return list(map(_plain, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
