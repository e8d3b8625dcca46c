"""Shapes that change: one way for every device, chosen by what the device says of itself.

A device that compiles open sizes gets a segment as it is. For any other the runtime fixes the sizes
(`fixing`) and has it compile the segment for each set of input shapes; so many programs are kept
(`pool`, `specialized`), and where the caller lists sizes to pad to, and rows are computed
independently of each other (`padding`), sizes between them share a program.
"""
