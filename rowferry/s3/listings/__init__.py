"""What a bucket holds: its keys in order, its folders, how many objects."""
