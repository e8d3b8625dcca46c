"""NNRt's driver interface, HDI 1.0 and 2.1: its types, and devices on either side of it."""
