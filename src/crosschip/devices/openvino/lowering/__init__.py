"""Passes that adapt a model to OpenVINO, a file a subject; `target` lists them in order.

Each documents what OpenVINO does without it, and in which version that was seen.
"""
