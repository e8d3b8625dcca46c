"""A quantized model: ddddocr's network of int8 reads a code, with its integers as they are."""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import crosschip as cc

picture = Image.new("L", (180, 64), 255)
ImageDraw.Draw(picture).text((12, 8), "7K3X", font=ImageFont.load_default(48), fill=0)
model = cc.compile("ddddocr.onnx", "onnxruntime")
pixels = np.asarray(picture, np.float32)[None, None] / 127.5 - 1
codes = model(pixels)[:, 0].argmax(-1)

letters = [code for i, code in enumerate(codes) if code and (i == 0 or codes[i - 1] != code)]
print("classes:", [int(code) for code in letters])
print(model.placement.summary())
figure, axes = plt.subplots(figsize=(4, 1.6))
axes.imshow(picture, cmap="gray")
axes.set_title(f"classes {[int(code) for code in letters]}", fontsize=9)
axes.axis("off")
figure.savefig("quantized_model.png", bbox_inches="tight", dpi=80)
