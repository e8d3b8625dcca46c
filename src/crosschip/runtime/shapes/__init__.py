"""Dynamic shapes.

A device that compiles dynamic dimensions gets a segment unchanged. For others the runtime makes the
shapes static and has the device compile the segment for each set of input shapes (`specialized`). A
bounded number of programs is kept (`pool`). If the caller lists sizes to pad to, and rows are
independent, sizes are padded to share a program (`padding`).
"""
