"""`python -m rowferry` is `rowferry`."""

from rowferry_cli import main

if __name__ == "__main__":
    main()
