"""The protocol between a driver and its clients: messages and shared memory."""
