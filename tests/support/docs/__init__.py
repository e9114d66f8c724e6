"""The project's pages and packages, as tests read them."""
