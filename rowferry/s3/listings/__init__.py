"""What a bucket holds: its keys in order."""
