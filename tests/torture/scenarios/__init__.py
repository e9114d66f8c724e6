"""The scenarios of `make torture`, by name: which fault, of what, and what is expected of it."""

from torture.scenarios.application import Applications, Rewrite
from torture.scenarios.chain import Chain
from torture.scenarios.connections import Connections
from torture.scenarios.database import Database, Ddl, ReadOnly, Sessions
from torture.scenarios.hosts import Hosts, ThousandKills
from torture.scenarios.killed import Kills, Ordinary, Proxy
from torture.scenarios.poison import Backends, Poison
from torture.scenarios.s3 import Bad, LoginPage, Token
from torture.scenarios.scenario import Scenario
from torture.scenarios.servers import Disk, Failover
from torture.scenarios.steps import Steps
from torture.scenarios.switch import Switch

SCENARIOS: dict[str, type[Scenario]] = {
    "kills": Kills,
    "ordinary": Ordinary,
    "steps": Steps,
    "database": Database,
    "disk": Disk,
    "failover": Failover,
    "bad_s3": Bad,
    "connections": Connections,
    "poison": Poison,
    "backends": Backends,
    "sessions": Sessions,
    "read_only": ReadOnly,
    "token": Token,
    "login_page": LoginPage,
    "proxy": Proxy,
    "ddl": Ddl,
    "application": Applications,
    "rewrite": Rewrite,
    "switch": Switch,
    "chain": Chain,
    "hosts": Hosts,
    "fleet": ThousandKills,
}
"""In the order in which they run."""
