"""Plans: records of compilations, with which a model is loaded from the cache without parsing it.

A plan has the data that runs need: inputs and outputs, segments with the cache entries of their
programs, and devices. Its key is made of the model's path, the request and the installed packages.
It is used if all files that the model was loaded from have the same bytes. The placement in a plan
is decoded on demand.
"""
