"""Tables of entries, with their objects and plans, as tests fill and audit them."""
