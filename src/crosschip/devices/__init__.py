"""The built-in devices, a folder a device; each is registered by an entry point."""
