"""Plans: what a model was compiled to, found again by the bytes of its files.

A plan says what running takes: inputs and outputs, the segments and where their programs are kept,
the devices. It is found by where the model is, what the caller wants, and what is installed, and it
is followed if every file that the model was loaded from has the bytes that it had. Whoever follows
one parses no model and runs no pass; what else may be asked for is read when it is.
"""
