"""Projects to begin with: what `crosschip new-device` writes.

A template is a project that works, of a device `my_npu`; a new one has another name.
"""
