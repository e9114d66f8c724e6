"""The enqueuer: plan → check → chunks → batch_queue."""
