"""`rowferry exporter`: serve metrics of the whole queue for Prometheus."""

import click

from rowferry.logs import LogFormat, set_up_logging
from rowferry_cli.command import Command
from rowferry_cli.options import log_format_option


@click.command("exporter", cls=Command)
@click.option(
    "--port",
    default=9465,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="The port to listen on; 0 picks a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@log_format_option
def command(port: int, host: str, log_format: LogFormat) -> None:
    """Serve /metrics of the whole queue, /healthz and /readyz, until stopped.

    One exporter is enough for any number of workers, which serve their own metrics (`rowferry worker --metrics-port`).
    It reads views and writes nothing: the rights of `rowferry init --grants ROLE --for grafana` are enough. While the
    database is unavailable it serves rowferry_exporter_up 0 and continues.
    """
    import signal
    from contextlib import closing

    from prometheus_client import CollectorRegistry, ProcessCollector

    from rowferry.health_server import Endpoint
    from rowferry_exporter.collector import QueueCollector

    set_up_logging(log_format)
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    with closing(QueueCollector()) as queue:
        registry.register(queue)
        with Endpoint(host, port, registry, queue.is_ready):
            signal.sigwait(stops)
