"""Runs the fake S3 server: `python -m rowferry_lab.servers.fake_s3 --help`."""

from rowferry_lab.servers.fake_s3.server import main

if __name__ == "__main__":
    main()
