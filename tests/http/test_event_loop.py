"""The event loop never waits for itself, and has stopped before the interpreter ends."""

import asyncio
import subprocess
import sys

import pytest

from rowferry.http import event_loop
from support.checkout import TESTS
from support.processes.processes import run_to_end

BUSY = """
import sys
sys.path.insert(0, sys.argv[1])
from support.s3.clients import HEAD, begin, facing
from support.processes.processes import wait_for
from rowferry.http import event_loop
from support.s3.stand_in import keep_silent

def keep_open():
    with facing(keep_silent) as (client, server):
        yield client, server

kept = keep_open()
client, server = next(kept)
for _ in range(50):
    begin(client, HEAD)
wait_for(lambda: len(server.requests) == 8)
"""

INTERRUPT = """
import os, signal, threading, time

is_interrupted = False

def interrupt(*_):
    global is_interrupted
    if not is_interrupted:
        is_interrupted = True
        raise KeyboardInterrupt

def press_ctrl_c():  # again and again: a signal just before the main thread sleeps is noticed by the next only
    while not is_interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

signal.signal(signal.SIGINT, interrupt)
pressing = threading.Thread(target=press_ctrl_c, daemon=True)
"""

WAITS = """
def press_while_it_waits():
    wait_for(lambda: len(client._deadlines._in_flight) == 51)
    pressing.start()

threading.Thread(target=press_while_it_waits, daemon=True).start()
client.ask(HEAD)
"""

ENDINGS = {
    "at its end": ("del client, server", 0),
    "by an exception": ("raise ValueError('on purpose')", 1),
    "by sys.exit": ("sys.exit(3)", 3),
    "in an open generator": ("cycle = [kept]; cycle.append(cycle)", 0),
    "by Ctrl-C while it waits": (INTERRUPT + WAITS, -2),
}


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([sys.executable, "-c", code, str(TESTS)])


@pytest.mark.by_day("at its end", "by Ctrl-C while it waits")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_ends_by_itself_with_requests_in_flight(ending: str) -> None:
    statement, status = ENDINGS[ending]
    ended = run_python(BUSY + statement)
    assert ended.returncode == status, ended.stderr


def test_the_event_loop_refuses_to_wait_for_itself_and_what_blocks_ends_where_it_is_awaited() -> None:
    async def wait_for_itself() -> None:
        event_loop.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="own thread"):
        event_loop.submit(wait_for_itself()).result(10)
    assert event_loop.run(event_loop.run_in_thread(lambda: 7)) == 7
    with pytest.raises(ZeroDivisionError):
        event_loop.run(event_loop.run_in_thread(lambda: 1 / 0))


LATE = """
import asyncio, atexit
from rowferry.http import event_loop

def send_late():
    try:
        event_loop.run(asyncio.sleep(0))
    except event_loop.LoopStopped:
        print("refused")

atexit.register(send_late)
event_loop.run(asyncio.sleep(0))
"""
"""Nothing is sent once the loop has stopped."""
INTERRUPTED_END = """
import asyncio, atexit, os, signal, time
from rowferry.http import event_loop

def end_slowly():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    print("ended", flush=True)

event_loop.run(asyncio.sleep(0))
atexit.register(event_loop.call_soon, end_slowly)
"""
"""Ctrl-C does not end the interpreter before the loop."""
INTERRUPTED_WAIT = """
import asyncio, threading
from rowferry.http import event_loop

ended = threading.Event()

async def wait():
    pressing.start()
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        ended.set()
        raise

try:
    event_loop.run(wait())
except KeyboardInterrupt:
    print(ended.wait(60))
"""
"""An interrupted wait cancels what it waits for."""


def test_the_loop_stops_before_the_interpreter_and_an_interrupted_wait_cancels_what_it_waits_for() -> None:
    for code, printed in ((LATE, "refused\n"), (INTERRUPT + INTERRUPTED_WAIT, "True\n")):
        ended = run_python(code)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, "")
    assert run_python(INTERRUPTED_END).stdout == "ended\n"
