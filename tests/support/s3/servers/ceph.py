"""Ceph's RGW before a cluster of one host: a monitor, a manager, one OSD with its objects in memory; no cephx."""

import signal
from pathlib import Path
from uuid import uuid4

from rowferry_lab.servers.s3_servers import START_DEADLINE, answers_http
from rowferry_lab.servers.server_process import ServerFailed
from support.processes.processes import wait_for
from support.s3.servers.own import ManyPrograms, Programs, find_low_port, find_program

ADVICE = "install ceph-mon, ceph-mgr, ceph-osd and radosgw (`tools/install-debian-servers`, as root)"
CONFIG = """\
[global]
fsid = {fsid}
mon_host = v1:127.0.0.1:{monitor_port}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
osd_crush_chooseleaf_type = 0
mon_max_pg_per_osd = 2000
mon_data = {folder}/mon
mgr_data = {folder}/mgr
osd_data = {folder}/osd
rgw_data = {folder}/rgw
run_dir = {folder}/run
admin_socket = {folder}/run/$name.asok
log_file = {folder}/log/$name.log
pid_file = {folder}/run/$name.pid
osd_objectstore = memstore
memstore_device_bytes = 6442450944
mon_osd_full_ratio = .99
mon_osd_nearfull_ratio = .98
mgr_initial_modules =
ms_bind_ipv4 = true
[client.rgw.x]
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_enable_usage_log = false
"""
FOLDERS = ("mon", "mgr", "osd", "rgw", "run", "log")


class CephServer(ManyPrograms):
    name = "ceph"

    def __init__(self) -> None:
        super().__init__()
        for program in ("ceph", "monmaptool", "ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "radosgw-admin"):
            find_program(program, advice=ADVICE)

    def start_all(self, programs: Programs, port: int) -> None:
        folder, config = programs.folder, programs.folder / "ceph.conf"
        monitor_port, fsid = find_low_port(), uuid4()
        for name in FOLDERS:
            (folder / name).mkdir()
        config.write_text(CONFIG.format(fsid=fsid, monitor_port=monitor_port, folder=folder, port=port))
        read = ("-c", config)
        start_cluster(programs, fsid=str(fsid), monitor_port=monitor_port, read=read)
        programs.start("radosgw", "-f", "-n", "client.rgw.x", *read, until=lambda: answers_http(port))
        keys = (f"--access-key={self.access_key}", f"--secret-key={self.secret_key}")
        programs.run("radosgw-admin", *read, "user", "create", "--uid=test", "--display-name=test", *keys)


def start_cluster(programs: Programs, *, fsid: str, monitor_port: int, read: tuple[str, Path]) -> None:
    """Start what stores the objects. An OSD that has lost its monitor ends at no other signal than SIGKILL."""
    programs.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{monitor_port}]", "monmap")
    programs.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", *read)
    programs.start("ceph-mon", "-f", "-i", "a", *read)
    programs.start("ceph-mgr", "-f", "-i", "x", *read)
    osd = str(uuid4())
    tell = ("ceph", *read, "--connect-timeout", "10")
    wait_for(lambda: succeeds(programs, *tell, "osd", "new", osd), deadline=START_DEADLINE)
    programs.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd, *read)
    programs.start("ceph-osd", "-f", "-i", "0", *read, end=signal.SIGKILL)


def succeeds(programs: Programs, *command: str | Path) -> bool:
    """Return whether a command succeeds by now: a monitor that has just started refuses some, and takes them twice."""
    try:
        programs.run(*command)
    except ServerFailed:
        return False
    return True
