"""NNRt's driver interface (HDI) 1.0 and 2.1: types, and devices on both sides."""
