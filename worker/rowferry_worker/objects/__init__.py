"""One object: copied, compared, retried, throttled."""
