"""The parts that the interfaces of Paddle's two runtimes, Inference and Lite, have in common."""
