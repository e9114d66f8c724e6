"""What the tables and the bucket show: columns, samples of their texts, and which of these name objects."""
