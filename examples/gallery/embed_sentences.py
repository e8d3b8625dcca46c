"""Embed sentences: MiniLM turns each into 384 numbers; similar sentences have similar numbers."""

import matplotlib.pyplot as plt
import numpy as np
from tokenizers import Tokenizer

import crosschip as cc

sentences = ["A cat sleeps.", "The kitten is resting.", "Stocks fell today.", "Markets went down."]
tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.enable_padding()
tokens = tokenizer.encode_batch(sentences)
ids = np.array([t.ids for t in tokens])
mask = np.array([t.attention_mask for t in tokens])
outputs = cc.compile("minilm.onnx", "onnxruntime").run({"input_ids": ids, "attention_mask": mask})
means = outputs["461"]  # of the words of each sentence
vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
similarity = vectors @ vectors.T
print("nearest:", (similarity - 2 * np.eye(4)).argmax(1).tolist())

figure, axes = plt.subplots(figsize=(5, 3.4))
figure.colorbar(axes.imshow(similarity, vmin=0, vmax=1))
axes.set(xticks=[], yticks=range(4), yticklabels=sentences)
figure.savefig("embed_sentences.svg", bbox_inches="tight")
