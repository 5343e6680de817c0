"""ci/bench's measurements. Each part yields rows (name, ours, yardstick, ratio, target, unit of both); a ratio of at least
the target passes. Called by ci/bench, which installs and builds."""
import argparse
import contextlib
import glob
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory  # noqa: E402
from places import Failed, Server, beside, check, fetch, free_port, in_turn, median, row, run, spawn, wrk  # noqa: E402

INGEST_MIB, INGEST_ROUNDS = 256, 7
WRK_SECONDS, WRK_ROUNDS = 2, 5
COMMITS = 1000
AUDIT_ROUNDS = 50
SAMPLER_SECONDS, SAMPLER_MS, SAMPLER_PROCESSES, LOOK_MS = 60, 500, 20, 10000
# Of the writes to a sleeping process's own memory; beyond, the machine is measured and not the sampler.
SLOW_TOUCHES_MAX = 0.02
FIXTURE = "tests/data/rvoip/baselines/20260929T224805Z"
DEFINITION = "examples/rvoip-sip/cleanrun.yaml"
FIXTURE_GATE = "call-setup-2k"


# ingest: wall time of PUT and POST against hashing, and against copying with fsync.


def ingest(places):
    with Server(places, "ingest") as s:
        times = {"ours": [], "openssl": [], "dd": []}
        copy = os.path.join(s.dir, "copy")

        def ours(p):
            times["ours"].append(s.upload(p, "OK"))

        def openssl(p):
            took, _, code = spawn(["/usr/bin/openssl", "dgst", "-sha256", p.path])
            check(code == 0, "openssl dgst failed")
            times["openssl"].append(took)

        def dd(p):
            took, _, code = spawn(["/usr/bin/dd", f"if={p.path}", f"of={copy}", "bs=1M", "conv=fsync"])
            check(code == 0 and os.path.getsize(copy) == p.size(), "dd failed")
            times["dd"].append(took)

        steps = [ours, openssl, dd]
        for i in range(INGEST_ROUNDS):
            p = s.make(f"round{i}", "ok", INGEST_MIB << 10, 1)[0]
            with open(p.path, "rb") as f:  # all three read it from memory
                while f.read(1 << 22):
                    pass
            for step in steps[i % 3:] + steps[:i % 3]:
                os.sync()
                step(p)
            for path in [p.path, copy, *glob.glob(f"{s.data}/objects/*/{p.digest[2:]}")]:
                os.unlink(path)
        mid = {k: median(v) for k, v in times.items()}
        slower = max(("openssl", "dd"), key=lambda k: mid[k])
        spread = ", ".join(f"{k} {min(v):.2f}-{max(v):.2f}" for k, v in times.items())
        yield row(f"ingest {INGEST_MIB} MiB", mid["ours"], mid[slower], mid[slower] / mid["ours"], 0.7, "s",
                  f"yardstick {slower}; {spread}")


# Requests per second.


def rates(urls):
    """Medians of alternating runs of the same command."""
    for url in urls.values():
        fetch(url)
    measured = in_turn({k: (lambda u=u: wrk(u, WRK_SECONDS)) for k, u in urls.items()}, WRK_ROUNDS)
    return {k: median(v) for k, v in measured.items()}


NGINX = """user root; worker_processes auto; pid {dir}/nginx.pid; error_log {dir}/nginx.log; daemon off;
events {{ worker_connections 768; }}
http {{ access_log off; sendfile on; tcp_nopush on; types {{ application/json json; }}
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4;
  scgi_temp_path {dir}/t5;
  server {{ listen 127.0.0.1:{port}; root {dir}/www; }} }}
"""


def verdict(places):
    with Server(places, "verdict") as s:
        p = s.make("run", "regression", 8, 1)[0]
        s.upload(p, "REGRESSION")
        url = f"{s.url}{s.api}/runs/{p.run}/verdict"
        body = fetch(url)
        check(json.loads(body)["verdict"] == "REGRESSION", "the verdict's document says something else")
        port = free_port()
        os.makedirs(f"{s.dir}/www")
        with open(f"{s.dir}/www/verdict.json", "wb") as f:
            f.write(body)
        with open(f"{s.dir}/nginx.conf", "w", encoding="utf-8") as f:
            f.write(NGINX.format(dir=s.dir, port=port))
        theirs = f"http://127.0.0.1:{port}/verdict.json"
        nginx = ["/usr/sbin/nginx", "-p", s.dir, "-c", f"{s.dir}/nginx.conf", "-e", f"{s.dir}/nginx.log"]
        with beside(nginx, f"{s.dir}/nginx.out", theirs):
            check(fetch(theirs) == body, "nginx serves other bytes")
            r = rates({"ours": url, "nginx": theirs, "fresh": url + "?fresh"})
        yield row("verdict JSON", r["ours"], r["nginx"], r["ours"] / r["nginx"], 0.5, "1/s",
                  f"nginx, static file of the same {len(body)} bytes")
        yield row("  made anew", r["fresh"], r["nginx"], r["fresh"] / r["nginx"], None, "1/s",
                  "with a query, which keeps the answer out of the server's memory")


def fossil_repository(path):
    """A repository of COMMITS commits in four branches, through fossil's own import."""
    parts = []
    for i in range(COMMITS):
        text = f"change {i}: a line about what it does and why it was needed\n"
        content = "".join(f"line {j} of version {i}\n" for j in range(i % 50 + 1))
        parts.append(f"commit refs/heads/{'trunk' if i % 7 else f'branch-{i % 3}'}\nmark :{i + 1}\n"
                     f"committer Bench <bench@example.org> {1700000000 + i * 3600} +0000\ndata {len(text)}\n{text}")
        if i:
            parts.append(f"from :{i}\n")
        parts.append(f"M 100644 inline src/file{i % 40}.c\ndata {len(content)}\n{content}\n")
    run("fossil", "import", "--git", "--force", path, input="".join(parts).encode(),
        env={**os.environ, "HOME": os.path.dirname(path), "USER": "bench"})
    out = run("fossil", "info", "-R", path, env={**os.environ, "HOME": os.path.dirname(path), "USER": "bench"})
    check(f"check-ins:    {COMMITS}" in out, f"fossil did not take {COMMITS} commits: {out}")


def compare(places):
    with Server(places, "compare") as s:
        bad = s.make("run", "regression", 8, 1)[0]
        other = s.make("other", "other", 8, 1)[0]
        s.upload(bad, "REGRESSION")
        s.upload(other, "NON_COMPARABLE")
        pages = {"compare page": f"{s.url}/r/{bad.run}/vs/{s.baseline}", "run page": f"{s.url}/r/{bad.run}",
                 "refusal page": f"{s.url}/r/{other.run}/vs/{s.baseline}"}
        check(b"REGRESSION" in fetch(pages["compare page"]), "the compare page has no verdict")
        check(b"NON_COMPARABLE" in fetch(pages["refusal page"]), "the refusal page has no verdict")
        sizes = {k: len(fetch(u)) for k, u in pages.items()}
        path = os.path.join(s.dir, "repository.fossil")
        fossil_repository(path)
        port = free_port()
        timeline = f"http://127.0.0.1:{port}/timeline"
        os.environ.update(HOME=s.dir, USER="bench")
        with beside(["fossil", "server", "--nojail", "--localhost", "--port", port, path], f"{s.dir}/fossil.log", timeline):
            check(b"change 999" in fetch(timeline), "fossil's timeline does not show the newest commit")
            urls = {**pages, "compare page, not kept": pages["compare page"] + "?fresh", "fossil": timeline}
            r = rates(urls)
        theirs = r["fossil"]
        for name in pages:
            yield row(name, r[name], theirs, r[name] / theirs, 50 if name == "compare page" else None, "1/s",
                      f"fossil timeline of {COMMITS} commits; the page has {sizes[name]} bytes")
        name = "compare page, not kept"
        yield row("  compare page, made anew", r[name], theirs, r[name] / theirs, None, "1/s", "with a query: rendered for each request")


# audit: a whole process each time.

PYTHON = "import json, sys\nfor name in sys.argv[1:]:\n    with open(name, 'rb') as f:\n        json.load(f)\n"
PYTHON_YAML = ("import json, sys, yaml\nwith open(sys.argv[1], 'rb') as f:\n    yaml.{}\n"
               "for name in sys.argv[2:]:\n    with open(name, 'rb') as f:\n        json.load(f)\n")
# What a Python program calls; and with libyaml's scanner, as cleanrun has it, which has to be asked for.
PYTHON_SAFE_LOAD, PYTHON_LIBYAML = PYTHON_YAML.format("safe_load(f)"), PYTHON_YAML.format("load(f, Loader=yaml.CSafeLoader)")


def two_trees(places, where):
    """The fixture, and a copy whose reports carry another run's numbers; the baseline's manifest outside both."""
    base, now = os.path.join(where, "baseline"), os.path.join(where, "current")
    shutil.copytree(os.path.join(places.root, FIXTURE), base)
    os.rename(os.path.join(base, "manifest.json"), os.path.join(where, "manifest.json"))
    shutil.copytree(base, now)
    for name in glob.glob(f"{now}/*/*.json"):
        with open(name, encoding="utf-8") as f:
            text = f.read()
        report = json.loads(text)
        if isinstance(report, dict) and "resources" in report:
            peak = report["resources"].get("peak_rss_mb")
            if peak is not None:
                text = text.replace(json.dumps(peak), json.dumps(peak * 1.5), 1)
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    files = sorted(glob.glob(f"{now}/*/*.json"))
    check(len(files) == 6, f"the fixture has {len(files)} files")
    return base, now, files


def audit(places):
    where = os.path.join(places.temporary, "audit")
    os.makedirs(where)
    base, now, files = two_trees(places, where)
    yaml = os.path.join(places.root, DEFINITION)
    canonical, manifest = os.path.join(where, "definition.json"), os.path.join(where, "manifest.json")
    with open(canonical, "w", encoding="utf-8") as f:
        f.write(run(places.cleanrun, "check", yaml, "--canonical", "--gate", FIXTURE_GATE))
    reports = [*sorted(glob.glob(f"{base}/*/*.json")), *files, manifest]
    out = os.path.join(where, "audit.json")
    cpu = {"json": [], "yaml": [], "python json": [], "python libyaml": [], "python yaml": []}

    def measured(name, argv, expected, to=os.devnull):
        took, used, code = spawn(argv, to)
        check(code == expected, f"{os.path.basename(argv[0])}: exit {code}, not {expected}")
        cpu[name].append(used)
        return took

    def ours(definition):
        return [places.cleanrun, "audit", "--definition", definition, "--gate", FIXTURE_GATE, "--baseline", base,
                "--current", now, "--baseline-manifest", manifest, "--quiet", "--json", "-"]

    measured("yaml", ours(yaml), 1, out)
    with open(out, encoding="utf-8") as f:
        document = json.load(f)
    made = document["made_comparisons"]
    check(document["verdict"] == "REGRESSION" and made >= 10 and made == document["expected_comparisons"],
          f"{made} comparisons, {document['verdict']}")
    python = ["/usr/bin/python3", "-c"]
    t = in_turn({"json": lambda: measured("json", ours(canonical), 1), "yaml": lambda: measured("yaml", ours(yaml), 1),
                 "python json": lambda: measured("python json", [*python, PYTHON, *reports, canonical], 0),
                 "python libyaml": lambda: measured("python libyaml", [*python, PYTHON_LIBYAML, yaml, *reports], 0)},
                AUDIT_ROUNDS)
    t.update(in_turn({"python yaml": lambda: measured("python yaml", [*python, PYTHON_SAFE_LOAD, yaml, *reports], 0)},
                     AUDIT_ROUNDS // 5))
    t = {k: median(v) * 1e3 for k, v in t.items()}
    c = {k: median(v) * 1e3 for k, v in cpu.items()}
    yield row("audit of the six-file fixture", t["yaml"], t["python yaml"], t["python yaml"] / t["yaml"], 10, "ms",
              f"/usr/bin/python3 that parses the same {len(reports) + 1} files: both trees, manifest, cleanrun.yaml of "
              f"{os.path.getsize(yaml) // 1024} KiB (yaml.safe_load); {made} comparisons")
    yield row("  Python with libyaml", t["yaml"], t["python libyaml"], t["python libyaml"] / t["yaml"], None, "ms",
              "the same with PyYAML's CSafeLoader")
    yield row("  CPU time of the same", c["yaml"], c["python libyaml"], c["python libyaml"] / c["yaml"], None, "ms")
    yield row("  with definition.json", t["json"], t["python json"], t["python json"] / t["json"], None, "ms",
              f"{os.path.getsize(canonical) // 1024} KiB of JSON instead of the YAML, on both sides")


# sampler: CPU time of the observer.


def sampler(places):
    every = [str(SAMPLER_MS), str(SAMPLER_PROCESSES)]
    bare = {}
    with contextlib.ExitStack() as stack:
        for what in ("files", "memory"):
            bare[what] = stack.enter_context(
                subprocess.Popen([places.bare_cost, what, str(SAMPLER_SECONDS - 2), *every], stdout=subprocess.PIPE))
        out = json.loads(run(places.sampler_cost, SAMPLER_SECONDS, *every, timeout=SAMPLER_SECONDS + 60))
        files, memory_only = (json.loads(bare[what].communicate(timeout=30)[0]) for what in ("files", "memory"))
    check(out["processes"] == SAMPLER_PROCESSES, f"{out['processes']} processes were seen")
    check(out["samples"] >= SAMPLER_SECONDS * 1000 // SAMPLER_MS - 2, f"only {out['samples']} samples")

    def line_of(name, share, target, note, unfit=None):
        return row(name, share, 0.1, 0.1 / share, target, "% of a core", note, unfit)

    def share_of(measured):
        return measured["cpu_us"] / measured["wall_us"] * 100

    def share_of_each(us):
        return us / 1000 / SAMPLER_MS * 100

    slow = memory_only["slow"] / memory_only["touches"]
    unfit = (f"a process that wakes as often and only writes to {SAMPLER_PROCESSES} pages of its own takes {share_of(memory_only):.2g} % "
             f"of a core here; {slow:.0%} of the writes took over 20 us, as where a host takes pages away from a virtual machine")
    yield line_of("sampler, 20 processes, 2 Hz", share_of(out), 1,
                  f"{out['cpu_us'] / 1e3:.1f} ms in {out['wall_us'] / 1e6:.1f} s, {out['samples']} samples: everything that "
                  "watching a run costs", unfit if slow > SLOW_TOUCHES_MAX else None)
    look = out["cold_us_per_look"] * SAMPLER_MS / LOOK_MS
    yield line_of("  after other work", share_of_each(out["cold_us_per_sample"] + look), 1,
                  f"{out['cold_us_per_sample']:.0f} us a sample after 64 MiB of other memory were written, and "
                  f"{out['cold_us_per_look']:.0f} us the look each ten seconds")
    yield line_of("  one after the other", share_of_each(out["warm_us_per_sample"]), None,
                  f"{out['warm_us_per_sample']:.0f} us a sample with warm caches, without the ten-second looks")
    yield line_of("  control: files only", share_of(files), None,
                  "a process that wakes, reads /proc/PID/stat of as many processes and sleeps")
    yield line_of("  control: no files", share_of(memory_only), None,
                  f"a process that wakes, writes to {SAMPLER_PROCESSES} pages of its own and sleeps; {slow:.1%} of the writes took "
                  "over 20 us")


PARTS = {"ingest": ingest, "verdict": verdict, "compare": compare, "audit": audit, "sampler": sampler, "memory": memory.measure}


class Places:
    def __init__(self, root, build, temporary):
        self.root, self.temporary = root, temporary
        self.cleanrun = os.path.join(build, "runner/cleanrun")
        self.server = os.path.join(build, "server/cleanrun-server")
        self.make_packages = os.path.join(build, "tests/bench/make_packages")
        self.sampler_cost = os.path.join(build, "tests/bench/sampler_cost")
        self.bare_cost = os.path.join(build, "tests/bench/bare_cost")


def number(x):
    if x >= 1000:
        return f"{x:.0f}"
    return f"{x:.1f}" if x >= 100 else f"{x:.3g}"


def line(r):
    target = "" if r["target"] is None else f">= {r['target']:g}"
    return (f"{r['name']:28} {number(r['ours']) + ' ' + r['unit']:>20} {number(r['yardstick']) + ' ' + r['unit']:>20} "
            f"{r['ratio']:8.2f} {target:>8} {r['result']}")


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [x.split(":", 1)[1].strip() for x in f if x.startswith("model name")]
    return {"cpu": models[0] if models else platform.machine(), "processors": os.cpu_count(), "kernel": platform.release(),
            "load_before": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d", time.gmtime())}


def measure(places, parts, as_json):
    rows, failures = [], []
    if not as_json:
        print(f"{'name':28} {'ours':>20} {'yardstick':>20} {'ratio':>8} {'target':>8}", flush=True)
    for part in parts:
        began = time.monotonic()
        try:
            for r in PARTS[part](places):
                rows.append({**r, "part": part})
                if not as_json:
                    print(line(r), flush=True)
        except (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
            failures.append({"part": part, "error": str(e)})
            print(f"ci/bench: {part}: {e}", file=sys.stderr, flush=True)
        print(f"ci/bench: {part} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        shutil.rmtree(os.path.join(places.temporary, part), ignore_errors=True)
    return rows, failures


def main():
    a = argparse.ArgumentParser()
    for name in ("--root", "--build", "--dir"):
        a.add_argument(name, required=True)
    a.add_argument("--json", action="store_true")
    a.add_argument("parts", nargs="+", choices=PARTS)
    a = a.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    about = machine()
    with tempfile.TemporaryDirectory(prefix="cleanrun-bench-", dir=a.dir) as temporary:
        rows, failures = measure(Places(a.root, a.build, temporary), a.parts, a.json)
    about["load_after"] = os.getloadavg()[0]
    missed = [r["name"] for r in rows if r["result"] == "MISS"]
    refused = [r for r in rows if r["result"] == "REFUSED"]
    if a.json:
        json.dump({"schema": "cleanrun-bench/1", "machine": about, "rows": rows, "failures": failures}, sys.stdout, indent=2)
        print()
    else:
        print(f"\n{about['cpu']}, {about['processors']} processors, Linux {about['kernel']}; "
              f"load {about['load_before']:.1f} before, {about['load_after']:.1f} after")
        for r in rows:
            if r["note"]:
                print(f"  {r['name']}: {r['note']}")
        if missed:
            print(f"missed: {', '.join(missed)}")
        for r in refused:
            print(f"not judged: {r['name']}: {r['unfit']}")
    return 1 if missed or failures else 3 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
