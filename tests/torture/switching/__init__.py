"""What the scenario `switch` is made of: an application of two versions, and an auditor that reads as either."""
