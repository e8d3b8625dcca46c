"""Read the text in a picture: RapidOCR, a package for ONNX Runtime, unchanged on another device."""

import matplotlib.pyplot as plt

import crosschip as cc
import crosschip.apis.onnxruntime

crosschip.apis.onnxruntime.install(devices=["openvino", "onnxruntime"])

from rapidocr_onnxruntime import RapidOCR  # noqa: E402

lines, _ = RapidOCR()("picture.png")

figure, axes = plt.subplots(figsize=(8, 5.4))
axes.imshow(cc.read_picture("picture.png"))
for corners, text, score in lines:
    axes.add_patch(plt.Polygon(corners, fill=False, edgecolor="tab:red"))
    print(f"{float(score):.2f} {text}")
axes.axis("off")
figure.savefig("read_text.png", bbox_inches="tight", dpi=80)
