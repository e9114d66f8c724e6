"""What a production object is given: content headers, encryption, tags and ACLs."""
