"""The queue in given states, its model, and packages of queues."""
