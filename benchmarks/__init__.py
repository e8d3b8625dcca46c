"""What crosschip costs and how exact it is, measured: `python -m benchmarks`."""
