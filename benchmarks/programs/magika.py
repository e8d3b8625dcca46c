"""magika tells the types of files by their contents."""

import json

from benchmarks.programs import Run

_FILES = (
    b'#include <stdio.h>\n\nint main(void) {\n    printf("%d\\n", 42);\n    return 0;\n}\n',
    b"def add(a, b):\n    return a + b\n\n\nif __name__ == '__main__':\n    print(add(1, 2))\n",
    json.dumps({"name": "crosschip", "devices": ["onnxruntime", "openvino"], "n": 3}).encode(),
    b"SELECT name, COUNT(*) FROM orders WHERE price > 10 GROUP BY name ORDER BY name;\n" * 3,
    b"# Title\n\nSome *words* and a [link](https://example.org).\n\n- one\n- two\n" * 3,
    b"<!DOCTYPE html>\n<html><head><title>Page</title></head><body><p>Text</p></body></html>\n",
)


def load() -> Run:
    from magika import Magika

    magika = Magika()

    def run() -> object:
        results = [magika.identify_bytes(file) for file in _FILES]
        return [{"label": str(r.output.label), "score": float(r.score)} for r in results]

    return run
