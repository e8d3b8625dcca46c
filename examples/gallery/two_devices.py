"""One model on two devices: a text reader on OpenVINO, its softmax on ONNX Runtime."""

import numpy as np

import crosschip as cc
from crosschip.cli import run

model = cc.compile(
    "ppocrv4_rec.onnx",
    devices=["openvino", "onnxruntime"],
    shapes={"x": (1, 3, 48, 320)},
    placement=cc.PlacementOptions(pin={"Softmax": "onnxruntime"}),
)
print(model.placement.summary())
scores = model(np.zeros((1, 3, 48, 320), np.float32))
print(f"{scores.shape[1]} characters, the least sum of probabilities {scores.sum(-1).min():.3f}")

options = ["--devices", "openvino,onnxruntime", "--shape", "x=1x3x48x320"]
options += ["--pin", "Softmax=onnxruntime", "--svg", "two_devices.svg"]
run(["explain", "ppocrv4_rec.onnx", *options])
