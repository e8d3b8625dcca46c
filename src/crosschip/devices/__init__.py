"""The devices in the box, a folder a device; each is found by its entry point."""
