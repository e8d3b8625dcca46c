"""Definition of operators: base class, slots, shape inference, examples and serialization."""
