"""What others see of a worker: heartbeat and metrics."""
