"""Programs that are measured as processes of their own; each prints one JSON document."""
