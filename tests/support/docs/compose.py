"""compose.yaml as the tests read it."""

from typing import Any

import yaml

from support.checkout import ROOT

_DOCUMENT: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = _DOCUMENT["services"]
SECRETS: dict[str, dict[str, str]] = _DOCUMENT["secrets"]
ALLOWED = ("ROWFERRY_ALLOWED_ENDPOINTS", "ROWFERRY_ALLOWED_FUNCTIONS", "ROWFERRY_ALLOWED_SQL_FUNCTIONS")
"""What limits the plans of a worker, wherever it runs."""
GUARD = "own-secrets"
"""The service that lets nothing start on the demo's secrets."""
OWN = {"worker", "exporter", "prometheus", "grafana", GUARD}
"""The services of users who have servers of their own."""
