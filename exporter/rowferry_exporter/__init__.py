"""The exporter: what the whole queue looks like, for one scrape, whatever the number of workers."""
