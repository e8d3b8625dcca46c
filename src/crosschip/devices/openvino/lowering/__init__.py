"""Passes that adapt a model to OpenVINO, a file a subject; `target` lists them in order.

Each documents what OpenVINO does without it, as seen in 2026.4 where no other version is named;
`quirks` has reproductions on OpenVINO itself.
"""
