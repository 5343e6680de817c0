"""What every part of the benchmark needs: programs that run beside it, uploads, timing, wrk."""
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

PROJECT = "demo/kvcache"  # of tests/lib/package.h, and the next two
GATE = "kvcache-50k"
CLASS = "demo"
PIECE = 1 << 20


class Failed(Exception):
    """A part could not be measured: wrong answers, a program that did not start."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def row(name, ours, yardstick, ratio, target, unit, note="", unfit=None):
    """unfit: why a missed target would say something about this machine and nothing about cleanrun."""
    result = "" if target is None else "PASS" if ratio >= target else "REFUSED" if unfit else "MISS"
    return {"name": name, "ours": ours, "yardstick": yardstick, "ratio": ratio, "target": target, "unit": unit,
            "result": result, "note": note, "unfit": unfit if result == "REFUSED" else None}


def run(*argv, timeout=120, **more):
    """A program to its end; its standard output. More than exit 0 is a failure."""
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False,
                          **more)
    check(done.returncode == 0, f"{os.path.basename(str(argv[0]))}: exit {done.returncode}: "
                                f"{done.stderr.decode(errors='replace')[-300:]}")
    return done.stdout.decode()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def fetch(url, headers=None):
    request = urllib.request.Request(url, headers=headers or {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


@contextlib.contextmanager
def beside(argv, log, url, accept=(200,)):
    """A server of a process group of its own, ready when url answers; ended with all it started."""
    with open(log, "ab") as out:
        child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0)
    try:
        for _ in range(200):
            check(child.poll() is None, f"{argv[0]} ended at once: {open(log, errors='replace').read()[-300:]}")
            try:
                fetch(url)
                break
            except urllib.error.HTTPError as e:
                if e.code in accept:
                    break
            except OSError:
                pass
            time.sleep(0.05)
        else:
            raise Failed(f"{argv[0]} did not answer {url}")
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 15)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, 9)
            child.wait(10)


class Package:
    def __init__(self, run_id, digest, path):
        self.run, self.digest, self.path = run_id, digest, path
        with open(path + ".dsse.json", "rb") as f:
            self.envelope = f.read()

    def size(self):
        return os.path.getsize(self.path)


class Server:
    """cleanrun-server on a data directory of its own, with a project, a runner and a token."""

    def __init__(self, places, name):
        self.places = places
        self.dir = os.path.join(places.temporary, name)
        self.data = os.path.join(self.dir, "data")
        os.makedirs(self.dir)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.api = f"/api/v1/projects/{PROJECT}"
        self.stack = contextlib.ExitStack()
        self.token = ""

    def admin(self, *args):
        return run(self.places.server, *args, "--data", self.data)

    def make(self, name, kind, kib, count):
        out = run(self.places.make_packages, self.dir, name, kind, kib, count, timeout=200,
                  env={**os.environ, "TMPDIR": self.dir})
        return [Package(*line.split()) for line in out.splitlines()]

    def __enter__(self):
        base = self.make("base", "base", 8, 1)[0]
        self.admin("project", "add", PROJECT)
        self.admin("runner", "add", "bench", "--class", CLASS, "--key", f"{self.dir}/pub.pem", "--project", PROJECT)
        self.token = self.admin("token", "add", "bench", "--scope", "upload", "--project", PROJECT).strip()
        process = self.stack.enter_context(
            beside([self.places.server, "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port}"],
                   f"{self.dir}/log", f"{self.url}/readyz"))
        self.pid = process.pid
        self.upload(base, "NON_COMPARABLE")
        self.admin("baseline", "approve", base.run, "--project", PROJECT, "--gate", GATE, "--reviewer", "bench", "--reason",
                   "benchmark")
        self.baseline = f"b-{base.run}"
        return self

    def __exit__(self, *exc):
        self.stack.__exit__(*exc)
        if exc[0] is not None and exc[0] is not GeneratorExit:
            with open(f"{self.dir}/log", encoding="utf-8", errors="replace") as f:
                print("".join(f.readlines()[-15:]), end="", file=sys.stderr)

    def head(self, method, path, length, kind):
        return (f"{method} {self.api}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").encode()

    def archive_head(self, p):
        return self.head("PUT", f"/blobs/sha256:{p.digest}", p.size(), "application/x-tar")

    def statement(self, p):
        kind = "application/vnd.dsse+json"
        return self.head("POST", f"/gates/{GATE}/runs", len(p.envelope), kind) + p.envelope

    def upload(self, p, verdict):
        """Both steps on one connection; seconds from the first byte to the verdict."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as s, open(p.path, "rb") as f:
            began = time.perf_counter()
            s.sendall(self.archive_head(p))
            s.sendfile(f)
            status, body = read_answer(s)
            check(status == 201, f"the archive was answered {status}: {body[:200]!r}")
            s.sendall(self.statement(p))
            status, body = read_answer(s)
            took = time.perf_counter() - began
        check(status == 201, f"the statement was answered {status}: {body[:300]!r}")
        got = json.loads(body)["verdict"]
        check(got == verdict, f"the verdict is {got}, not {verdict}")
        return took


def parse_answer(data):
    """(status, body) of a complete answer, or None while bytes are missing."""
    head, mark, body = data.partition(b"\r\n\r\n")
    if not mark:
        return None
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    check(length, f"an answer without a length: {head[:200]!r}")
    if len(body) < int(length[1]):
        return None
    return int(head.split()[1]), body


def read_answer(s):
    data = b""
    while True:
        answer = parse_answer(data)
        if answer:
            return answer
        piece = s.recv(65536)
        check(piece, f"the connection ended: {data[:200]!r}")
        data += piece


def spawn(argv, out=os.devnull):
    """(wall, CPU) seconds of one program from its start to its end; the exit code."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    took = time.perf_counter() - began
    return took, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)


def wrk(url, seconds, connections=16):
    """Requests per second; an answer that is no success spoils the measurement."""
    text = run("wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", url, timeout=seconds + 60)
    check("Non-2xx" not in text and "Socket errors" not in text, f"wrk on {url}: {text}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])


def in_turn(measurements, rounds):
    """Calls each of {name: function} once per round, every round starting with another; {name: [values]}."""
    names = list(measurements)
    values = {n: [] for n in names}
    for i in range(rounds):
        for n in names[i % len(names):] + names[:i % len(names)]:
            values[n].append(measurements[n]())
    return values


def median(values):
    return statistics.median(values)
