"""Transcribe notes: Spotify's Basic Pitch hears a melody of four tones."""

import matplotlib.pyplot as plt
import numpy as np

import crosschip as cc

RATE, SAMPLES = 22050, 43844
seconds = np.arange(SAMPLES) / RATE
midi = [60, 64, 67, 72]
melody = np.array([440 * 2 ** ((note - 69) / 12) for note in midi])[(seconds * 2).astype(int)]
phase = 2 * np.pi * np.cumsum(melody) / RATE
sound = sum(np.sin(k * phase) / k**2 for k in range(1, 6)) * 0.3

model = cc.compile("basic_pitch.onnx", "onnxruntime")
outputs = model.run({"serving_default_input_2:0": sound[None, :, None].astype(np.float32)})
notes = outputs["StatefulPartitionedCall:1"][0]  # 172 frames of the 88 keys of a piano
heard = [notes[43 * i + 10 : 43 * i + 30].mean(0).argmax() + 21 for i in range(4)]
print("notes:", [int(note) for note in heard])

figure, axes = plt.subplots(figsize=(8, 2.6))
axes.imshow(notes.T, aspect="auto", origin="lower", extent=(0, 2, 21, 109), cmap="magma")
axes.set(xlabel="seconds", ylabel="MIDI note", ylim=(50, 85))
figure.savefig("transcribe_notes.svg", bbox_inches="tight")
