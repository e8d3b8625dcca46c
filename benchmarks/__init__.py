"""The costs and the exactness of crosschip, measured: `python -m benchmarks`."""
