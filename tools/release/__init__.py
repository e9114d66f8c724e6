"""`make release`: everything that a release is made of, built, checked and tried, but not published."""
