"""Examples of the standard operators: one module per family of `crosschip.ops.standard`."""
