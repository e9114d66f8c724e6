"""`make torture`: faults of every kind during real migrations, and an auditor that looks on all the while."""
