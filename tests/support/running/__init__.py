"""What a run of the tests says about itself: which skips it allows."""
