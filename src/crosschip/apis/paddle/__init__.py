"""The parts that Paddle Inference's and Paddle Lite's interfaces share."""
