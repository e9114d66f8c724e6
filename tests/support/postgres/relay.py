"""A relay before PostgreSQL that can fall silent, or tell another version, and that keeps the server's end open when
the client goes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo


@contextmanager
def silent_after_connecting(dsn: str) -> Iterator[tuple[str, threading.Event]]:
    """Yield the DSN of a relay to the database, and an event that makes it swallow every answer from then on."""
    silent = threading.Event()
    with relayed(dsn, lambda answer: b"" if silent.is_set() else answer) as relay:
        yield relay, silent


@contextmanager
def telling_version(dsn: str, major: int) -> Iterator[str]:
    """Yield the DSN of a relay to the database, which takes itself for PostgreSQL `major` (two digits) there."""
    with psycopg.connect(dsn) as connection:
        actual = connection.info.server_version // 10_000
    old, new = (b"server_version\0%d" % version for version in (actual, major))
    with relayed(dsn, lambda answer: answer.replace(old, new)) as relay:
        yield relay


@contextmanager
def relayed(dsn: str, change: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the DSN of a relay that changes what the server sends."""
    target = conninfo_to_dict(dsn)
    listener = socket.create_server(("127.0.0.1", 0))
    sockets: list[socket.socket] = [listener]

    def pump(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(change(data))
        except OSError:
            return

    def accept() -> None:
        try:
            while True:
                client, _ = listener.accept()
                sockets.append(client)
                server = socket.create_connection((str(target["host"]), int(str(target["port"]))))
                sockets.append(server)
                for arguments in ((client, server, bytes), (server, client, change)):
                    threading.Thread(target=pump, args=arguments, daemon=True).start()
        except OSError:
            return

    threading.Thread(target=accept, daemon=True).start()
    port = listener.getsockname()[1]
    try:
        yield make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable")
    finally:
        for one in sockets:
            one.close()
