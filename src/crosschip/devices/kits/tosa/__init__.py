"""Models of standard operators as TOSA 1.0, for compilers that read it.

TOSA is Arm's Tensor Operator Set Architecture; its specification defines each operator's result.
"""
