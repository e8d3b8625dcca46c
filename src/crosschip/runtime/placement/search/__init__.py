"""The search for the placement of blocks on devices that takes the least predicted time."""
