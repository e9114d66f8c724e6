"""Whose fault a failure of a request is: the legacy side's or the production side's."""
