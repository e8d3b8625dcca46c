"""Passes that adapt a model to OpenVINO, a file a family; `target` lists them in order.

Each names the quirk that it avoids, or says what OpenVINO 2026.4 does without it.
"""
