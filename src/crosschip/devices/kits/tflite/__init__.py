"""Models of standard operators as TensorFlow Lite files, for engines and compilers that read them.

A model is lowered in the intermediate representation: operators on images become `Native`
operations with channels last, between transpositions; passes cancel these; then all other standard
operations become `Native` ones. The file has one operator for each of them.
"""
