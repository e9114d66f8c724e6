"""`python -m rowferry` is `rowferry`."""

from rowferry.commands import main

if __name__ == "__main__":
    main()
