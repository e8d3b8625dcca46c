"""NNRt's programming interface: the functions, structures and enumerations of its headers."""
