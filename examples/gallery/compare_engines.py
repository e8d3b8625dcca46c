"""Engines and devices on one file: which one reads text fastest, and how exactly?"""

import crosschip as cc

comparison = cc.compare("ppocrv4_rec.onnx", shapes={"x": (1, 3, 48, 320)})
comparison.save("compare_engines.svg", title="PP-OCRv4, text recognition")
for each in comparison.timed:
    print(f"{each.label}: {each.timing.median_ms:.2f} ms, error {each.error:.0e}")
