"""What operators are made of: their base class, slots, shape inference, examples and faces."""
