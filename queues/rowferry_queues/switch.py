"""What passes are asked for while an application is being switched to the production bucket."""

from datetime import datetime
from typing import Any

from rowferry.queue_spec import QueueChoices


class SwitchChoices(QueueChoices, frozen=True, kw_only=True):
    """What a pass knows of the switch."""

    switched_at: datetime | None = None
    """Production objects that were written since are the application's own: those that differ are kept."""
    skew: tuple[float, float] | None = None
    """By how many seconds the production server's clock is ahead of the legacy server's, at least and at most."""

    def describe_switch(self) -> dict[str, Any]:
        """Return what the payload says of it."""
        described: dict[str, Any] = {}
        if self.switched_at is not None:
            described["switched_at"] = self.switched_at.isoformat()
        if self.skew is not None:
            described["skew"] = list(self.skew)
        return described
