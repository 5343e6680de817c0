"""Resident memory of the server: idle, and while many uploads are under way at the same moment."""
import os
import re
import selectors
import socket
import time

from places import Server, check, fetch, parse_answer, row

UPLOADS, KIB, WAVES = 200, 4096, 3
IDLE_MIB, LOADED_MIB = 64, 96
FIRST = 256 << 10  # of every archive, before any is sent further
DRIBBLE = 4 << 10
GATHER_S = 40
PIECE = 64 << 10
TIMEOUT = 120


def rss_kib(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(rf"^{key}:\s+(\d+) kB", f.read(), re.M)[1])


class Sender:
    """One connection: a request's head, then bytes of a file; the answer."""

    def __init__(self, port, head, path=None, length=0):
        self.began = time.monotonic()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setblocking(False)
        self.head, self.sent, self.length = head, 0, length
        self.file = open(path, "rb") if path else None  # closed by close
        self.answer, self.got = None, b""

    def send(self, until):
        """One piece; True while more may be sent."""
        if self.head:
            self.head = self.head[self.socket.send(self.head):]
        elif self.sent < min(until, self.length):
            piece = min(PIECE, min(until, self.length) - self.sent)
            self.sent += os.sendfile(self.socket.fileno(), self.file.fileno(), self.sent, piece)
        return bool(self.head) or self.sent < min(until, self.length)

    def receive(self):
        piece = self.socket.recv(65536)
        check(piece, f"the server closed a connection after {time.monotonic() - self.began:.1f} s, {self.sent} bytes sent")
        self.got += piece
        self.answer = parse_answer(self.got)

    def close(self):
        self.socket.close()
        if self.file:
            self.file.close()


def drive(senders, until, answers, each=None):
    """All of them in turn, a piece each, until `until` bytes are sent, and answered when `answers`."""
    deadline = time.monotonic() + TIMEOUT
    with selectors.DefaultSelector() as ready:
        for s in senders:
            ready.register(s.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, s)
        while ready.get_map():
            check(time.monotonic() < deadline, "the uploads took too long")
            for key, events in ready.select(1):
                s = key.data
                more = s.send(until) if events & selectors.EVENT_WRITE else True
                if events & selectors.EVENT_READ:
                    s.receive()
                if s.answer or (not answers and not more):
                    ready.unregister(key.fileobj)
                elif not more:
                    ready.modify(key.fileobj, selectors.EVENT_READ, s)
            if each:
                each()


def wave(s, packages, status):
    """The archives of all packages at once; the resident memory while all are half-way, in KiB."""
    senders = [Sender(s.port, s.archive_head(p), p.path, p.size()) for p in packages]
    try:
        began = time.monotonic()
        under_way = sent = 0
        while under_way < len(packages) and time.monotonic() < began + GATHER_S:
            sent += FIRST if sent == 0 else DRIBBLE  # nobody is silent for long
            drive(senders, sent, False)
            time.sleep(0.2)
            under_way = len(os.listdir(f"{s.data}/spool"))
        check(under_way == len(packages), f"only {under_way} uploads were under way after {GATHER_S} s")
        half_way = rss_kib(s.pid, "VmRSS")
        drive(senders, KIB << 11, True)
        for x in senders:
            check(x.answer[0] == status, f"an archive was answered {x.answer}")
    finally:
        for x in senders:
            x.close()
    return half_way


def statements(s, packages):
    senders = [Sender(s.port, s.statement(p)) for p in packages]
    try:
        drive(senders, 0, True)
        for x in senders:
            check(x.answer[0] == 201, f"a statement was answered {x.answer[0]}: {x.answer[1][:200]!r}")
    finally:
        for x in senders:
            x.close()


def measure(places):
    with Server(places, "memory") as s:
        packages = s.make("load", "ok", KIB, UPLOADS)
        fetch(f"{s.url}/")
        idle = rss_kib(s.pid, "VmRSS")
        yield memory_row("server memory, idle", idle, IDLE_MIB, "VmRSS after start, one run and one page")
        peaks = []
        for i in range(WAVES):
            os.sync()  # the wave before is written: no disk queue to wait for
            with open(f"/proc/{s.pid}/clear_refs", "w", encoding="utf-8") as f:
                f.write("5")  # the peak starts anew
            half_way = wave(s, packages, 201 if i == 0 else 200)
            if i == 0:
                statements(s, packages)
            peaks.append(rss_kib(s.pid, "VmHWM"))
        after = rss_kib(s.pid, "VmRSS")
        yield memory_row(f"server memory, {UPLOADS} uploads", max(peaks), LOADED_MIB,
                         f"highest VmHWM of {WAVES} waves of {UPLOADS} x {KIB >> 10} MiB at once ("
                         + ", ".join(f"{x / 1024:.1f}" for x in peaks)
                         + f" MiB); {half_way / 1024:.1f} MiB while all were under way, {after / 1024:.1f} MiB afterwards")


def memory_row(name, kib, limit_mib, note):
    return row(name, kib / 1024, limit_mib, limit_mib * 1024 / kib, 1, "MiB", note)
