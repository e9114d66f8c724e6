"""What rowferry is measured against: two baselines of our own, rclone and s5cmd where they are installed."""
