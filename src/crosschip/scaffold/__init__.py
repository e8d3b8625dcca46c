"""Templates of device projects for `crosschip new-device`.

A template is a working project of a device `my_npu`, whose name is replaced.
"""
