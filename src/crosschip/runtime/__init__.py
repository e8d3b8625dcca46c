"""Discovery, placement, compilation, cache and execution."""
