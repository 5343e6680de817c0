/*
 * A real server with real packages: every verdict there is, hostile names, and the rvoip report with its own
 * samples. start() returns { origin, pages, runs, stop }.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export const root = process.env.CLEANRUN_SOURCE_ROOT ?? path.resolve(path.dirname(new URL(import.meta.url).pathname), '../..');
export const build = process.env.CLEANRUN_BUILD_ROOT ?? path.join(root, 'build');
const program = {
  server: path.join(build, 'server/cleanrun-server'),
  cleanrun: path.join(build, 'runner/cleanrun'),
  package: path.join(build, 'tests/lib/make_package'),
};
const env = { ...process.env, CLEANRUN_SOURCE_ROOT: root, CLEANRUN_BUILD_ROOT: build };
const project = 'demo/kvcache';
const gate = 'kvcache-50k';
const machine = 'demo';

/* Markup, quotes, brackets of the template language, a mark that turns text round, and no place to break. */
export const HOSTILE = '<img src=x onerror=alert(1)>&amp;"\'{{project}}\u202e</script>';
export const LONG = 'a_very_long_label_without_any_place_to_break_'.repeat(6);

const quoted = JSON.stringify;

function definition({ capacityWhy = 'the cache decides the hit rate', points = true } = {}) {
  return `version: 1
project: ${project}
gates:
  ${gate}:
    title: ${quoted('Key-value cache ' + HOSTILE)}
    class: ${machine}
    build: {command: [make], executable: {from: path, path: kvcache}}
    run: {command: ['{executable}'], report: kvcache/50000.json}
    sampling: {interval: 100ms, into: /resources}
    modes: {memory: {snapshots: [load_end]}}
    phases: {markers: [load_start, load_end, drain_end], required: [load_start, load_end, drain_end]}
    windows:
      load: {start_phase: load_start, end_phase: load_end, estimator: endpoint-bands, fraction: 6, cap: 60s, min_samples: 20, min_band_samples: 3, min_coverage: 9s}
    identity:
      - {path: /load/capacity, require: required, label: capacity, why: ${quoted(capacityWhy)}}
      - {path: /load/name, require: required}
${points ? '      - {path: /load/points, require: required, type: array, label: load points, why: earlier points warm the cache}\n' : ''}\
    accept:
      exact: [{name: ${quoted('scenario is ' + HOSTILE)}, path: /scenario, equals: kvcache}]
      limits:
        - {name: every request answered, path: /results/answered, op: '>=', value: 1, unit: ''}
        - {name: achieved rate, path: /results/rate, op: '>=', value: 49000, unit: 1/s}
    audit:
      paths: {required: [kvcache/50000.json]}
      metrics:
        - {path: /results/probes, label: hash probes, unit: probes/op, worse: higher, tolerance_pct: 1, gated: true}
        - {path: /results/rate, label: ${quoted(LONG)}, unit: 1/s, worse: lower, tolerance_pct: 5, gated: true}
        - {path: /resources/windows/load/growth_mb_per_hour, label: RSS growth, unit: MB/h, worse: higher, tolerance_pct: 20, floor: 100, gated: true}
        - {path: /results/p99, label: ${quoted('p99 ' + HOSTILE)}, unit: ns, worse: higher, tolerance_pct: 30, gated: false}
`;
}

const markers = [['load_start', 0], ['load_end', 10000], ['drain_end', 12000]].map(([phase, elapsed_ms]) => ({ phase, kind: 'actual', elapsed_ms }));

/* 100 ms apart for 12 s; growth in KiB per second. */
function samples(growth) {
  let csv = 't_ms,rss_kib\n';
  for (let t = 0; t <= 12000; t += 100) csv += `${t},${40960 + Math.round(growth * t / 1000) + (t / 100 % 3) * 4}\n`;
  return csv;
}

const report = (more = {}) => ({
  scenario: 'kvcache',
  load: { capacity: 20000, name: HOSTILE, points: [5000, 20000, 50000], ...more.load },
  results: { answered: 1, rate: 50012.25, probes: 1.31, p99: 1834567, ...more.results },
  note: `${Math.random()}`,
});

/* A server that was started is stopped when what follows fails. */
export async function start() {
  const started = {};
  try {
    return await setUp(started);
  } catch (error) {
    started.child?.kill('SIGKILL');
    throw error;
  }
}

async function setUp(started) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cleanrun-live-'));
  const file = (name) => path.join(dir, name);
  const data = file('data');
  const admin = (...args) => execFileSync(program.server, [...args, '--data', data], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const write = (name, text) => { fs.writeFileSync(file(name), text); return file(name); };
  let commits = 0;
  const commit = () => (++commits).toString(16).padStart(8, 'abcdef01').padEnd(40, '7');

  execFileSync(program.cleanrun, ['key', 'gen', '--out', file('key')], { env, stdio: 'pipe' });
  admin('migrate');
  admin('project', 'add', project);
  admin('project', 'add', 'eisenzopf/rvoip');
  admin('project', 'add', 'demo/empty');
  admin('runner', 'add', 'this-machine', '--class', machine, '--key', file('key/pub.pem'), '--project', project);
  execFileSync(program.cleanrun, ['key', 'gen', '--out', file('key2')], { env, stdio: 'pipe' });
  admin('runner', 'add', 'cloud-1', '--class', 'ec2-m5-4xlarge', '--key', file('key2/pub.pem'), '--project', 'eisenzopf/rvoip');
  for (const [name, p] of [['t', project], ['t2', 'eisenzopf/rvoip']])
    fs.writeFileSync(file(name), admin('token', 'add', name, '--scope', 'upload', '--project', p), { mode: 0o600 });

  const child = spawn(program.server, ['serve', '--data', data, '--listen', '127.0.0.1:0', '--port-file', file('port')], { env, stdio: ['ignore', 'ignore', fs.openSync(file('log'), 'a')] });
  started.child = child;
  let origin;
  for (let i = 0; i < 200 && !origin; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const port = fs.existsSync(file('port')) ? fs.readFileSync(file('port'), 'utf8').trim() : '';
    if (port && await fetch(`http://127.0.0.1:${port}/readyz`).then((r) => r.ok, () => false)) origin = `http://127.0.0.1:${port}`;
  }
  assert.ok(origin, fs.readFileSync(file('log'), 'utf8'));

  /* Makes a package and pushes it; returns the run id. */
  function push(name, args, expected, { to = project, at = gate, token = 't', key = 'key', change } = {}) {
    const tar = file(`${name}.tar`);
    const run = execFileSync(program.package, ['--out', tar, '--key', file(`${key}/key.pem`), '--project', to, '--gate', at, ...args], { env, encoding: 'utf8' }).trim();
    change?.(tar);
    const answer = spawnSync(program.cleanrun, ['push', tar, '--server', origin, '--project', to, '--gate', at, '--token-file', file(token), '--json'], { env, encoding: 'utf8' });
    assert.equal(answer.status, expected, `${name}: ${answer.stdout}${answer.stderr}`);
    return run;
  }
  function kv(name, expected, { say = {}, growth = 0.5, definition: d = definition(), more = [], change } = {}) {
    const body = report(say);
    const made = write(`${name}.csv`, samples(growth));
    const marks = write(`${name}.markers`, quoted(markers));
    return push(name, ['--definition', write(`${name}.yaml`, d), '--report', write(`${name}.json`, quoted(body)), '--samples', made, '--markers', marks, '--derive',
      '--commit', commit(), '--class', machine, '--executable', `${commits}`, ...more], expected, { change });
  }

  const runs = {};
  runs.first = kv('first', 3);
  runs.dirtyFirst = kv('dirty-first', 3, { more: ['--dirty'] });
  admin('baseline', 'approve', runs.first, '--project', project, '--gate', gate, '--reviewer', `r ${HOSTILE}`, '--reason', `first ${HOSTILE} ${LONG}`);
  runs.ok = kv('ok', 0, { say: { results: { probes: 1.312, rate: 50100.5 } } });
  runs.regression = kv('regression', 1, { say: { results: { probes: 2.62 } }, growth: 430 });
  runs.refused = kv('refused', 3, { say: { load: { capacity: 30000, points: [5000, 50000] }, results: { probes: 0.9 } } });
  runs.definition = kv('definition', 3, { definition: definition().replace('command: [make]', 'command: [make, fast]') });
  runs.fail = kv('fail', 4, { say: { results: { rate: 41000 } } });
  runs.dirty = kv('dirty', 3, { more: ['--dirty'] });
  runs.memory = kv('memory', 7, { more: ['--mode', 'memory', '--control', runs.ok] });
  runs.second = kv('second', 0, { say: { results: { probes: 1.315 } } });
  admin('baseline', 'approve', runs.second, '--project', project, '--gate', gate, '--reviewer', 'second', '--reason', 'newer');
  runs.after = kv('after', 0, { say: { results: { probes: 1.316 } } });
  runs.invalid = kv('invalid', 5, { more: ['--lie', 'acceptance'], say: { results: { rate: 41000 } } });
  runs.tampered = kv('tampered', 5, { change: (tar) => { const b = fs.readFileSync(tar); b[b.length >> 1] ^= 1; fs.writeFileSync(tar, b); } });
  runs.damaged = kv('damaged', 0);

  /* Its checks, windows and metrics. What would need its own build and run to be in the package is left out: a
   * manifest that contradicts its definition is no evidence. */
  const canonical = write('rvoip.yaml', fs.readFileSync(path.join(root, 'examples/rvoip-sip/cleanrun.yaml'), 'utf8')
    .replace(/^ {6}(?:env|profile):\n(?: {8}.*\n)+/gm, '').replace(/^ {6}allocator:.*\n/m, '').replace(/^ {4}conditioning:\n(?: {6}.*\n)+/m, ''));
  const rvoip = (name, expected, change = () => {}) => {
    const r = JSON.parse(fs.readFileSync(path.join(root, 'tests/data/rvoip/reports/canonical-pass-2000.json'), 'utf8'));
    const own = commit();
    r.environment.git_commit = own; /* run.report_commit */
    r.environment.source_fingerprint_sha256 = '00112233445566778899aabbccddeeff'.repeat(2); /* run.report_fingerprint: tests/lib/package.c */
    /* which the reduced report leaves out */
    Object.assign(r.environment, { cpu_model: 'Xeon 8259CL', cpu_count_logical: 16, cpu_count_physical: 8, os: 'linux', total_ram_gb: 61.5, rustc: 'rustc 1.91.0' });
    change(r);
    return push(name, ['--definition', canonical, '--report', write(`${name}.json`, quoted(r)),
      '--report-name', 'perf_call_setup_cps_pbx-media-server/2000.json', '--class', 'ec2-m5-4xlarge', '--commit', own], expected,
    { to: 'eisenzopf/rvoip', at: 'call-setup-2k', token: 't2', key: 'key2' });
  };
  runs.rvoip = rvoip('rvoip', 3);
  admin('baseline', 'approve', runs.rvoip, '--project', 'eisenzopf/rvoip', '--gate', 'call-setup-2k', '--reviewer', 'm', '--reason', 'canonical');
  runs.rvoipFail = rvoip('rvoip-fail', 4, (r) => { r.results.calls_succeeded = 64990; });
  runs.rvoipRefused = rvoip('rvoip-refused', 3, (r) => { r.environment.cpu_model = 'another machine'; });
  runs.rvoipPoint = rvoip('rvoip-point', 4, (r) => {
    const identity = r.diagnostics.measurement_identity;
    identity.sweep_points_cps.splice(2, 1);
    identity.conditioning.points.splice(2, 1);
  });

  /* A byte of a stored object changes under the server. */
  const digest = execFileSync('sha256sum', [file('damaged.tar')], { encoding: 'utf8' }).split(' ')[0];
  const object = execFileSync('find', [data, '-type', 'f', '-name', `*${digest.slice(2)}*`], { encoding: 'utf8' }).trim();
  fs.chmodSync(object, 0o600);
  const bytes = fs.readFileSync(object);
  bytes[bytes.length >> 1] ^= 1;
  fs.writeFileSync(object, bytes);

  const sha = (await (await fetch(`${origin}/r/${runs.ok}.json`)).json()).commit;
  const pages = {
    home: '/', project: `/p/${project}`, gate: `/p/${project}/${gate}`, baselines: `/p/${project}/${gate}/baselines`, baseline: `/b/b-${runs.first}`,
    commit: `/p/${project}/commit/${sha}`, help: '/help', reason: '/help/reasons/NC-IDENTITY-DIFFERS', empty: '/p/demo/empty',
    'compare-ok': `/r/${runs.ok}/vs/b-${runs.first}`, 'compare-regression': `/r/${runs.regression}/vs/b-${runs.first}`,
    refusal: `/r/${runs.refused}/vs/b-${runs.first}`, 'refusal-definition': `/r/${runs.definition}/vs/b-${runs.first}`, 'compare-fail': `/r/${runs.fail}/vs/b-${runs.first}`,
    'compare-runs': `/r/${runs.ok}/vs/${runs.second}`,
    'rvoip-gate': '/p/eisenzopf/rvoip/call-setup-2k',
    'rvoip-refusal': `/r/${runs.rvoipRefused}/vs/b-${runs.rvoip}`, 'rvoip-compare-fail': `/r/${runs.rvoipFail}/vs/b-${runs.rvoip}`, 'rvoip-point': `/r/${runs.rvoipPoint}/vs/b-${runs.rvoip}`,
  };
  for (const [name, run] of Object.entries(runs))
    if (!['invalid', 'tampered'].includes(name)) pages[`run-${name}`] = `/r/${run}`;

  async function stop() {
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.exitCode === null ? child.once('exit', resolve) : resolve(child.exitCode));
    const log = fs.readFileSync(file('log'), 'utf8');
    if (!process.env.CLEANRUN_KEEP) fs.rmSync(dir, { recursive: true, force: true });
    return { code, log };
  }
  return { origin, pages, runs, stop, dir };
}

export function commandWorks(words) {
  const name = words[0] === 'cleanrun-server' ? program.server : program.cleanrun;
  return spawnSync(name, [...words.slice(1), '--help'], { env, encoding: 'utf8' });
}
