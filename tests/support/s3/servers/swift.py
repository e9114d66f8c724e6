"""OpenStack Swift with the S3 API of its proxy (s3api): one host, one copy, files below a folder."""

from pathlib import Path

from rowferry_lab.servers.s3_servers import answers_http
from support.s3.servers.own import ManyPrograms, Programs, find_low_port, find_program

ADVICE = (
    "install swift-proxy, swift-account, swift-container, swift-object and memcached "
    "(`tools/install-debian-servers`, as root)"
)
STORES = ("account", "container", "object")
PIPELINE = (
    "catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth copy slo dlo versioned_writes "
    "proxy-server"
)
COMMON = """\
[swift-hash]
swift_hash_path_suffix = x
swift_hash_path_prefix = y
[storage-policy:0]
name = gold
default = yes
"""
STORE = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = root
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
log_level = WARNING
disable_fallocate = true
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""
PROXY = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = root
swift_dir = {folder}
workers = 0
log_level = WARNING
[pipeline:main]
pipeline = {pipeline}
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
{filters}
"""
FILTER_SETTINGS = {
    "cache": "memcache_servers = 127.0.0.1:{cache_port}",
    "s3api": "location = us-east-1",
    "tempauth": "user_test_tester = {secret_key} .admin",
    "versioned_writes": "allow_versioned_writes = true",
}
EGG_NAMES = {"cache": "memcache"}


class SwiftServer(ManyPrograms):
    name = "swift"

    def __init__(self) -> None:
        super().__init__()
        self.access_key = "test:tester"
        for program in (
            "memcached",
            "swift-ring-builder",
            "swift-proxy-server",
            *(f"swift-{n}-server" for n in STORES),
        ):
            find_program(program, advice=ADVICE)

    def start_all(self, programs: Programs, port: int) -> None:
        folder, cache_port = programs.folder, find_low_port()
        (folder / "devices" / "sda").mkdir(parents=True)
        (folder / "swift.conf").write_text(COMMON)
        filters = compose_filters(cache_port=cache_port, secret_key=self.secret_key)
        proxy = PROXY.format(port=port, folder=folder, pipeline=PIPELINE, filters=filters)
        (folder / "proxy-server.conf").write_text(proxy)
        programs.start("memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(cache_port))
        for name in STORES:
            start_store(programs, name)
        programs.start("swift-proxy-server", folder / "proxy-server.conf", until=lambda: answers_http(port))


def start_store(programs: Programs, name: str) -> None:
    """Start the server of accounts, of containers or of objects, on a ring of its own."""
    folder, port = programs.folder, find_low_port()
    ring = folder / f"{name}.builder"
    programs.run("swift-ring-builder", ring, "create", "4", "1", "1")
    programs.run("swift-ring-builder", ring, "add", f"r1z1-127.0.0.1:{port}/sda", "1")
    programs.run("swift-ring-builder", ring, "rebalance")
    config = Path(folder / f"{name}-server.conf")
    config.write_text(STORE.format(port=port, folder=folder, name=name))
    programs.start(f"swift-{name}-server", config, until=lambda: answers_http(port))


def compose_filters(**values: object) -> str:
    """Return the sections of what stands in the pipeline before the proxy itself."""
    names = PIPELINE.split()[:-1]
    sections = (
        f"[filter:{name}]\nuse = egg:swift#{EGG_NAMES.get(name, name)}\n{FILTER_SETTINGS.get(name, '')}"
        for name in names
    )
    return "\n".join(sections).format(**values)
