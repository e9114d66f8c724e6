"""A relay before PostgreSQL that can fall silent, and that keeps the server's end open when the client goes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict


@contextmanager
def silent_after_connecting(dsn: str) -> Iterator[tuple[str, threading.Event]]:
    """Yield the DSN of a relay to the database, and an event that makes it swallow every answer from then on."""
    target, silent = conninfo_to_dict(dsn), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    sockets: list[socket.socket] = [listener]

    def pump(source: socket.socket, sink: socket.socket, *, muted: bool) -> None:
        try:
            while data := source.recv(65536):
                if not (muted and silent.is_set()):
                    sink.sendall(data)
        except OSError:
            return

    def accept() -> None:
        try:
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((str(target["host"]), int(target["port"])))
                sockets.extend((client, server))
                for arguments, muted in (((client, server), False), ((server, client), True)):
                    threading.Thread(target=pump, args=arguments, kwargs={"muted": muted}, daemon=True).start()
        except OSError:
            return

    threading.Thread(target=accept, daemon=True).start()
    port = listener.getsockname()[1]
    try:
        yield psycopg.conninfo.make_conninfo(dsn, host="127.0.0.1", port=port), silent
    finally:
        for one in sockets:
            one.close()
