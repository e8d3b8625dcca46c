"""The programming interfaces of other systems, on the same models, devices and runtime."""
