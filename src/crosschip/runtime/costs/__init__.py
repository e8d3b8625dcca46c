"""What the parts of a model cost on each device: measured, kept, and estimated for the rest."""
