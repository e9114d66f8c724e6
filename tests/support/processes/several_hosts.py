"""Several hosts on one machine: network namespaces on a bridge."""

import ctypes
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HUB_ADDRESS = "10.77.0.1"


def why_not() -> str | None:
    """Return why there can be no hosts here; None when there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux makes network namespaces"
    if not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        return "iproute2 is not installed here"
    probe = f"rf-{secrets.token_hex(3)}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return "this machine allows no network namespaces"
    ip("netns", "del", probe)
    return None


def ip(*arguments: str, inside: str | None = None) -> None:
    """Run `ip`, in a namespace if one is named."""
    command = ["ip", *(["-netns", inside] if inside else []), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)


@dataclass(frozen=True)
class Host:
    """A network namespace with one address, and a name of its own for what runs in it."""

    name: str
    namespace: str
    port: str
    """The hub's end of its cable."""
    hub: str

    def command(self, *command: str) -> list[str]:
        """Return what runs a command on this host."""
        rename = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c", rename, self.name, *command]

    def cut(self) -> None:
        """Lose every packet from and to this host, and tell neither side."""
        ip("link", "set", self.port, "nomaster", inside=self.hub)

    def mend(self) -> None:
        """Connect the cable again."""
        ip("link", "set", self.port, "master", "switch", inside=self.hub)


@contextmanager
def network(count: int) -> Iterator[tuple[str, list[Host]]]:
    """Yield the namespace of the servers, and hosts on its bridge; all of them vanish afterwards."""
    unique = secrets.token_hex(3)
    hub = f"rf-{unique}-hub"
    with ExitStack() as until:

        def add(namespace: str) -> None:
            ip("netns", "add", namespace)
            until.callback(ip, "netns", "del", namespace)
            ip("link", "set", "lo", "up", inside=namespace)

        add(hub)
        ip("link", "add", "switch", "type", "bridge", inside=hub)
        ip("address", "add", f"{HUB_ADDRESS}/24", "dev", "switch", inside=hub)
        ip("link", "set", "switch", "up", inside=hub)
        hosts = [Host(f"host-{n}", f"rf-{unique}-{n}", f"port{n}", hub) for n in range(1, count + 1)]
        for number, host in enumerate(hosts, start=1):
            add(host.namespace)
            ip("link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace, inside=hub)
            ip("link", "set", host.port, "master", "switch", "up", inside=hub)
            ip("address", "add", f"10.77.0.{10 + number}/24", "dev", "eth0", inside=host.namespace)
            ip("link", "set", "eth0", "up", inside=host.namespace)
        yield hub, hosts


CLONE_NEWNET = 0x40000000


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a namespace that `ip netns` made until the block ends; threads that run already stay where they are."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path: Path | int) -> None:
        descriptor = path if isinstance(path, int) else os.open(path, os.O_RDONLY)
        try:
            if libc.setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)

    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    enter(Path("/run/netns") / namespace)
    try:
        yield
    finally:
        enter(before)
