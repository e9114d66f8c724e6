"""The queues of rowferry itself, a package each: its specification (`spec`), and what workers do (`perform`)."""
