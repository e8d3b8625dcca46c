"""Other systems' programming interfaces, on crosschip's models, devices and runtime."""
