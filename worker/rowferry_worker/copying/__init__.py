"""One object, from its first look to the object at its production key."""
