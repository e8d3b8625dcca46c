"""What goes between a driver's process and those that use it: messages, and shared memory."""
