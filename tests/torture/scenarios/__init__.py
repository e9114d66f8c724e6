"""The scenarios of `make torture`, by name: which fault, of what, and what is expected of it."""

from torture.scenarios.application import Applications, Rewrite
from torture.scenarios.chain import Chain
from torture.scenarios.hosts import Hosts, ThousandKills
from torture.scenarios.kinds import Alike, DroppedTags, Kills, Unreadable
from torture.scenarios.poison import Poison
from torture.scenarios.postgres import BrokenOrder, Database, FewConnections
from torture.scenarios.s3 import Bad, LoginPage
from torture.scenarios.scenario import Scenario
from torture.scenarios.servers import Disk, Failover
from torture.scenarios.switch import Switch

SCENARIOS: dict[str, type[Scenario]] = {
    "kills": Kills,
    "database": Database,
    "disk": Disk,
    "failover": Failover,
    "bad_s3": Bad,
    "poison": Poison,
    "alike": Alike,
    "unreadable": Unreadable,
    "dropped_tags": DroppedTags,
    "few_connections": FewConnections,
    "broken_order": BrokenOrder,
    "login_page": LoginPage,
    "application": Applications,
    "rewrite": Rewrite,
    "switch": Switch,
    "chain": Chain,
    "hosts": Hosts,
    "fleet": ThousandKills,
}
"""In the order in which they run."""
