"""Detect speech: Silero's detector listens in a session, which keeps its state on the device."""

import matplotlib.pyplot as plt
import numpy as np

import crosschip as cc

sound = np.load("speech.npy")  # 16,000 samples a second
size, context = 512, 64
shapes = {"input": (1, size + context), "state": (2, 1, 128)}
model = cc.compile("silero_vad.onnx", "onnxruntime", shapes=shapes)
session = model.session({"stateN": "state"})
probabilities = []
padded = np.concatenate([np.zeros(context, np.float32), sound])
for begin in range(0, len(sound) - size, size):
    chunk = padded[None, begin : begin + size + context]
    outputs = session.run({"input": chunk, "sr": np.array(16000)})
    probabilities.append(outputs["output"].item())

edges = np.flatnonzero(np.diff(np.array([0, *probabilities, 0]) > 0.5)) * size / 16000
print("speech:", [f"{start:.1f} to {end:.1f} s" for start, end in edges.reshape(-1, 2)])
figure, axes = plt.subplots(figsize=(8, 2.4))
axes.plot(np.arange(len(sound)) / 16000, sound, linewidth=0.4, color="0.7")
axes.plot(np.arange(len(probabilities)) * size / 16000, probabilities, color="tab:red")
axes.set(xlabel="seconds", ylabel="probability of speech", ylim=(-1, 1.05))
figure.savefig("detect_speech.svg", bbox_inches="tight")
