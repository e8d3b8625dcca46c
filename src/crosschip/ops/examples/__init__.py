"""Examples of the standard operators, a file for each family of `crosschip.ops.standard`."""
