"""An interactive page of a model, in one file: its graph, its operations and a run's time line.

- `hierarchy`: the nested blocks that open on a click.
- `graph_data`: the graph as plain data.
- `document`: the page with its data, styles and scripts.
"""
