"""What `rowferry check` finds about [queue.inspect] on this host."""

from collections.abc import Iterator

from rowferry.errors import MigrationFault
from rowferry.functions import load_function
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.queues.queue_check import QueueCheck
from rowferry_queues.inspect.spec import InspectSettings


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield why the function cannot be called here; missing tables and columns were found before."""
    settings: InspectSettings = context.settings
    try:
        if settings.function is not None:
            load_function(settings.function)
    except MigrationFault as error:
        yield problem(error)
