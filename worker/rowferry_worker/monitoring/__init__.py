"""What others see of a worker: heartbeat, metrics, traces."""
