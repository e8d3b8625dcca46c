"""Detect faces: MediaPipe's BlazeFace looks at 896 places of two grids; the best one is drawn."""

import matplotlib.pyplot as plt
import numpy as np

import crosschip as cc

photo = cc.read_picture("photo.jpg")[:512]
side = 128
preprocess = cc.Preprocess(resize=side, mean=127.5, scale=1 / 127.5, layout="NHWC")
model = cc.compile(preprocess.attach(cc.load("blazeface.onnx")), "onnxruntime")
scores16, scores8, boxes16, boxes8 = model(photo[None])
scores, boxes = np.hstack([scores16, scores8]), np.hstack([boxes16, boxes8])

corners = [np.mgrid[:n, :n].reshape(2, -1).T[:, ::-1] / n for n in (16, 8)]
grids = [np.repeat(corners[0], 2, 0), np.repeat(corners[1], 6, 0)]
best = scores[0, :, 0].argmax()
center = np.vstack(grids)[best] + 0.5 / (16 if best < 512 else 8) + boxes[0, best, :2] / side
width, height = boxes[0, best, 2:4] / side * photo.shape[1]
x, y = center * photo.shape[1] - (width / 2, height / 2)
print(f"box {x:.0f} {y:.0f} {width:.0f} {height:.0f}")
plt.imshow(photo)
plt.gca().add_patch(plt.Rectangle((x, y), width, height, fill=False, edgecolor="tab:red"))
plt.axis("off")
plt.savefig("detect_faces.png", bbox_inches="tight", dpi=60)
