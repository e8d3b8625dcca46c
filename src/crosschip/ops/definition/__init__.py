"""The parts of operators: their base class, slots, shape inference, examples and mappings."""
