"""What people look at, as tests read it: pages, boards, terminal views."""
