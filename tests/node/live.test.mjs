/*
 * The pages as the real server makes them of real packages (live.mjs), in Chromium: JavaScript off and on, light and
 * dark, desk and phone. The JSON twin of each page is the judge of its numbers, axe-core and html-validate of its form.
 *
 *   CLEANRUN_BUILD_ROOT=build node --test tests/node/live.test.mjs
 * CLEANRUN_SHOTS=DIR also writes a screenshot of each.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { FileSystemConfigLoader, HtmlValidate } from 'html-validate';
import { commandWorks, HOSTILE, LONG, start } from './live.mjs';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.CLEANRUN_SHOTS;
const SHOWN_HOSTILE = HOSTILE.replace('\u202e', '[U+202E]');

const KINDS = ['home', 'project', 'gate', 'baselines', 'baseline', 'commit', 'help', 'reason', 'compare-regression', 'refusal', 'rvoip-compare-fail', 'run-ok', 'run-fail',
  'run-damaged'];

let live;
let browser;
let documents; /* by page name */

const get = (address, options) => fetch(live.origin + address, { redirect: 'manual', ...options });
const twin = (address, suffix) => (address === '/' ? `/index${suffix}` : address + suffix);

before(async () => {
  live = await start();
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  documents = {};
  for (const [name, address] of Object.entries(live.pages)) documents[name] = await (await get(twin(address, '.json'))).json();
});

after(async () => {
  await browser?.close();
  const end = await live?.stop();
  if (end) {
    assert.equal(end.code, 0, end.log);
    assert.doesNotMatch(end.log, /ERROR|panic|Sanitizer/);
  }
});

test('every verdict is there, and the runs are what they were made to be', () => {
  const verdict = (name) => documents[name].verdict?.verdict ?? null;
  assert.deepEqual(
    ['run-first', 'run-ok', 'run-regression', 'run-refused', 'run-definition', 'run-fail', 'run-dirty', 'run-memory', 'run-rvoipFail'].map(verdict),
    ['NON_COMPARABLE', 'OK', 'REGRESSION', 'NON_COMPARABLE', 'NON_COMPARABLE', 'FAIL', 'NON_COMPARABLE', null, 'FAIL']);
  assert.equal(documents['run-damaged'].evidence.damaged, true);
  assert.equal(documents.gate.invalid_attempts.length, 1);
});

test('pages have their headers, twins their types', async () => {
  for (const [name, address] of Object.entries(live.pages)) {
    const page = await get(address);
    assert.equal(page.status, 200, name);
    assert.match(page.headers.get('content-type'), /^text\/html; *charset=utf-8$/, name);
    const csp = page.headers.get('content-security-policy');
    assert.match(csp, /default-src 'none'/, name);
    assert.doesNotMatch(csp, /unsafe/, name);
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff', name);
    const types = { '.json': /^application\/json/, '.txt': /^text\/plain; *charset=utf-8$/ };
    if (address.includes('/vs/')) types['.md'] = /^text\/markdown/;
    for (const [suffix, type] of Object.entries(types)) {
      const answer = await get(twin(address, suffix));
      assert.equal(answer.status, 200, name + suffix);
      assert.match(answer.headers.get('content-type'), type, name + suffix);
      const body = await answer.text();
      assert.ok(body.length > 20, name + suffix);
      if (suffix === '.txt') assert.doesNotMatch(body, /[\u0000-\u0009\u000b-\u001f\u007f\u0080-\u009f\u202a-\u202e\u2066-\u2069]/, name);
    }
  }
});

test('an address of nothing is a page that says so', async () => {
  for (const address of ['/p/demo/none', '/r/20200101T000000Z-00000000', '/nothing', '/help/reasons/NC-NONE', '/p/demo/kvcache/no-gate']) {
    const page = await get(address, { headers: { Accept: 'text/html' } });
    assert.equal(page.status, 404, address);
    assert.match(page.headers.get('content-type'), /^text\/html/, address);
    assert.match(page.headers.get('content-security-policy'), /default-src 'none'/, address);
    assert.match(await page.text(), /404/, address);
  }
  const json = await get('/p/demo/none.json');
  assert.equal(json.status, 404);
  assert.match(json.headers.get('content-type'), /^application\/problem\+json/);
});

test('html-validate finds nothing', async () => {
  const validate = new HtmlValidate(new FileSystemConfigLoader({ root: true, extends: ['html-validate:recommended', 'html-validate:a11y'] }));
  for (const [name, address] of [...Object.entries(live.pages), ['error', '/p/demo/none']]) {
    const report = await validate.validateString(await (await get(address)).text());
    assert.deepEqual(report.results.flatMap((r) => r.messages.map((m) => `${name}:${m.line}: ${m.ruleId}: ${m.message}`)), []);
  }
});

test('every link on every page leads somewhere', async () => {
  const queue = Object.values(live.pages);
  const seen = new Set(queue);
  let followed = 0;
  while (queue.length) {
    const address = queue.shift();
    const answer = await get(address);
    followed++;
    /* Bytes of damaged evidence are never given out. */
    const damaged = address.includes(live.runs.damaged) && /\/(evidence\.tar|f\/|archive|bundle)/.test(address);
    if (damaged) assert.equal(answer.status, 500, address);
    else assert.ok(answer.status < 400, `${address}: ${answer.status}`);
    const text = await answer.text();
    if (!/^text\/html/.test(answer.headers.get('content-type'))) continue;
    for (const [, link] of text.matchAll(/(?:href|src)="([^"]*)"/g)) {
      if (link.startsWith('data:')) continue;
      const url = new URL(link.replaceAll('&amp;', '&'), live.origin + address);
      assert.equal(url.origin, live.origin, `${address} links to ${link}`);
      if (url.hash && url.pathname === new URL(live.origin + address).pathname) assert.ok(text.includes(`id="${url.hash.slice(1)}"`), `${address}${url.hash}`);
      if (!seen.has(url.pathname)) {
        seen.add(url.pathname);
        queue.push(url.pathname);
      }
    }
  }
  assert.ok(followed > 300, `${followed} addresses`);
});

function numbersOf(value, found = new Set()) {
  if (typeof value === 'number') found.add(value);
  else if (Array.isArray(value)) value.forEach((v) => numbersOf(v, found));
  else if (value && typeof value === 'object') Object.values(value).forEach((v) => numbersOf(v, found));
  return found;
}

const SCALE = { 'µs': 1e3, ms: 1e6, s: 1e9, KiB: 1024, MiB: 1048576, GiB: 1073741824 };

test('every number on a page is a number of its twin, and reads the same', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  let checked = 0;
  for (const [name, address] of Object.entries(live.pages)) {
    const numbers = numbersOf(documents[name]);
    await page.goto(live.origin + address);
    const shown = await page.$$eval('data', (nodes) => nodes.map((n) => {
      const next = n.nextSibling?.nodeType === 3 ? n.nextSibling.textContent.trim().split(/[\s,;]/)[0] : '';
      return { value: n.value, text: n.textContent, unit: next };
    }));
    for (const { value, text, unit } of shown) {
      const exact = Number(value);
      assert.ok(numbers.has(exact), `${name}: ${value} is not in the document`);
      const digits = text.replace(/−/g, '-').replace(/[,+ %]/g, '');
      const half = 0.5000001 * 10 ** -(digits.split('.')[1]?.length ?? 0);
      const candidates = [1, 1000, 1024, SCALE[unit] ?? 1, (SCALE[unit] ?? 1) / 1e6, (SCALE[unit] ?? 1) / 1e9].map((s) => exact / s);
      assert.ok(candidates.some((c) => Math.abs(Math.abs(c) - Math.abs(Number(digits))) <= half), `${name}: "${text} ${unit}" for ${value}`);
      checked++;
    }
  }
  assert.ok(checked > 1000, `${checked} numbers`);
  await context.close();
});

test('comparisons and checks are all on their pages, under their verdict', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  let rows = 0;
  for (const [name, address] of Object.entries(live.pages)) {
    const d = documents[name];
    if (!['cleanrun-run/1', 'cleanrun-compare/1'].includes(d.schema)) continue;
    await page.goto(live.origin + address);
    await page.$$eval('details', (all) => all.forEach((x) => { x.open = true; }));
    const text = await page.locator('main').innerText();
    const values = new Set(await page.$$eval('data', (all) => all.map((n) => Number(n.value))));
    const word = await page.locator('.word').first().innerText();
    const evidence = d.evidence?.damaged ? 'DAMAGED' : null;
    const said = typeof d.verdict === 'string' ? d.verdict : d.verdict?.verdict;
    assert.ok(word.toUpperCase().includes(evidence ?? said ?? 'NO VERDICT'), `${name}: "${word}"`);
    if (d.schema === 'cleanrun-compare/1' && d.audit.verdict !== 'NON_COMPARABLE') {
      assert.ok(d.audit.comparisons.length > 0, name);
      for (const c of d.audit.comparisons) {
        assert.ok(values.has(c.baseline) && values.has(c.current), `${name}: ${c.metric}`);
        const nearZero = c.floor !== null && Math.abs(c.baseline) < c.floor;
        assert.ok(nearZero || c.delta_pct === null || values.has(c.delta_pct), `${name}: ${c.metric} ${c.delta_pct}`);
        rows++;
      }
    }
    if (d.schema === 'cleanrun-compare/1' && d.audit.verdict === 'NON_COMPARABLE') {
      assert.doesNotMatch(text, /same experiment, /, name);
      assert.doesNotMatch(text, /[0-9]\s*%/, name);
      for (const r of d.audit.reasons) assert.ok(text.includes(r.code), `${name}: ${r.code}`);
    }
    if (d.schema !== 'cleanrun-compare/1')
      for (const c of d.acceptance?.checks ?? []) {
        assert.ok(text.includes(c.name.replaceAll('\u202e', '[U+202E]')), `${name}: ${c.name}`);
        if (typeof c.actual === 'number') assert.ok(values.has(c.actual), `${name}: ${c.name} ${c.actual}`);
        rows++;
      }
  }
  assert.ok(rows > 600, `${rows} rows`);
  await context.close();
});

test('199 checks: a failed one is seen before anything is opened', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(live.origin + live.pages['run-rvoipFail']);
  const failed = page.getByRole('table', { name: /^Failed checks \(2 of 199\)/ });
  assert.match(await failed.innerText(), /results\.calls_succeeded[\s\S]*65,000[\s\S]*64,990/);
  const first = await page.locator('main details > summary', { hasText: 'passed' }).first().innerText();
  assert.match(first, /^results: 5 of 7 passed .*FAIL/);
  await context.close();
});

test("a report's own samples are drawn with windows, bands and representative points", async () => {
  const d = documents['run-rvoip'];
  assert.equal(d.series.n_total, 1461);
  assert.equal(d.phases.length, 12);
  const window = d.windows.find((w) => w.name === 'post_drain_cleanup');
  assert.ok(window.complete);
  assert.equal(window.growth_mb_per_hour, 5);
  assert.deepEqual(window.bound.bands.map((b) => b.t_ms), [160000, 700000]);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(live.origin + live.pages['run-rvoip']);
  assert.equal(await page.locator('svg.timeline rect').count(), 5);
  assert.equal(await page.locator('svg.chart rect.win').count(), 2);
  assert.equal(await page.locator('svg.chart rect.band').count(), 4);
  assert.equal(await page.locator('svg.chart circle.rep').count(), 4);
  assert.ok((await page.locator('svg.chart polyline.l').getAttribute('points')).split(' ').length >= 400);
  await context.close();
});

test('a refusal shows which elements of a list differ', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(live.origin + live.pages.refusal);
  const row = page.locator('tr.diff', { hasText: '/load/points' });
  assert.deepEqual(await row.locator('del').allInnerTexts(), ['20000']);
  assert.deepEqual(await row.locator('ins').allInnerTexts(), ['(absent)']);
  await page.goto(live.origin + live.pages['rvoip-point']);
  const points = page.locator('tr.diff', { hasText: 'conditioning/points' });
  assert.equal(await points.locator('del').count(), 1);
  assert.match(await points.locator('del').innerText(), /300/);
  await context.close();
});

test('history: another experiment is hollow and not joined, a new baseline is marked', async () => {
  const series = documents.gate.history.find((h) => h.label === 'hash probes');
  const by = (run) => series.points.find((p) => p.run === run);
  assert.equal(by(live.runs.definition).same_experiment, false);
  assert.equal(by(live.runs.ok).same_experiment, true);
  assert.deepEqual(series.points.filter((p) => p.new_baseline).map((p) => p.run), [live.runs.ok, live.runs.after]);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(live.origin + live.pages.gate);
  const chart = page.locator('figure', { hasText: 'hash probes over' });
  assert.equal(await chart.locator('line.mark').count(), 2);
  assert.equal(await chart.locator('circle.hollow').count(), 4); /* identity, definition, dirty, and what was found damaged */
  const at = async (locator, key) => Number((await locator.getAttribute(key)).replace('%', ''));
  const hollow = await Promise.all((await chart.locator('circle.hollow').all()).map((c) => at(c, 'cx')));
  for (const line of await chart.locator('polyline.l').all()) {
    const xs = (await line.getAttribute('points')).split(' ').map((p) => Number(p.split(',')[0]) / 10);
    for (const x of hollow) assert.ok(xs.every((v) => Math.abs(v - x) > 0.1) && (xs[0] > x || xs.at(-1) < x), `a line goes through ${x}`);
  }
  const table = page.getByRole('table', { name: /^hash probes of each run/, includeHidden: true });
  assert.equal(await table.locator('tbody tr').count(), series.points.length);
  await context.close();
});

test('hostile text stays text', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  let seen = 0;
  page.on('dialog', () => assert.fail('a script of the evidence ran'));
  for (const [name, address] of Object.entries(live.pages)) {
    await page.goto(live.origin + address);
    assert.equal(await page.locator('img, main script, [onerror]').count(), 0, name);
    const html = await page.content();
    assert.doesNotMatch(html, /[\u202a-\u202e\u2066-\u2069]/, name);
    if ((await page.locator('main').textContent()).includes(SHOWN_HOSTILE)) seen++;
  }
  assert.ok(seen >= 6, `${seen} pages show it`);
  await page.goto(live.origin + live.pages['compare-ok']);
  assert.ok((await page.locator('main').innerText()).includes(LONG));
  await context.close();
});

test('the commands that pages advise exist', async () => {
  const commands = new Set();
  for (const { code } of documents.help.reasons) {
    const { resolve } = await (await get(`/help/reasons/${code}.json`)).json();
    const found = [...resolve.matchAll(/`([^`]+)`/g)].map((m) => m[1]);
    assert.equal(found.length, 1, code);
    commands.add(found[0]);
  }
  for (const d of Object.values(documents))
    for (const step of d.next ?? []) if (step.command) commands.add(step.command);
  for (const command of commands) {
    const words = command.split(' ');
    const end = words.findIndex((w, i) => i > 0 && !/^[a-z]+$/.test(w));
    const help = commandWorks(words.slice(0, end < 0 ? words.length : Math.min(end, 3)));
    const text = help.stdout + help.stderr;
    assert.equal(help.status, 0, `${command}: ${text}`);
    for (const option of words.filter((w) => w.startsWith('--'))) assert.ok(text.includes(option), `${command}: ${option} is unknown`);
  }
  const refusal = documents.refusal.next.map((s) => s.command);
  assert.deepEqual(refusal, [`cleanrun run kvcache-50k --server ${live.origin}`,
    `cleanrun-server baseline approve ${live.runs.refused} --project demo/kvcache --gate kvcache-50k --reviewer NAME --reason TEXT`]);
  // a run that is a baseline already is not promoted again
  assert.ok(documents['run-first'].promoted);
  assert.ok(documents['run-first'].next.every((step) => !step.command?.includes('baseline approve')));
});

for (const script of [false, true]) {
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 320]) {
      test(`no barrier, no sideways scroll: ${scheme}, ${width} px, script ${script ? 'on' : 'off'}`, async () => {
        const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, javaScriptEnabled: script, bypassCSP: script });
        const page = await context.newPage();
        const complaints = [];
        page.on('console', (m) => complaints.push(`${page.url()}: ${m.text()}`));
        page.on('pageerror', (e) => complaints.push(`${page.url()}: ${e}`));
        page.on('requestfailed', (r) => complaints.push(r.url()));
        for (const [name, address] of Object.entries(live.pages)) {
          await page.goto(live.origin + address);
          assert.equal(await page.locator('h1').count(), 1, name);
          assert.ok((await page.locator('main').innerText()).length > 20, name);
          if (script) {
            await page.$$eval('details', (all) => all.forEach((d) => { d.open = true; }));
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
            /* Form is looked at once; colours and sizes again where they differ, on a page of each kind. */
            const first = scheme === 'light' && width === 1280;
            if (!first && !KINDS.includes(name)) continue;
            await page.evaluate(axe);
            const result = await page.evaluate((all) => axe.run(all
              ? { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }
              : { runOnly: { type: 'rule', values: ['color-contrast', 'target-size', 'scrollable-region-focusable'] } }), first);
            assert.deepEqual(result.violations.map((v) => `${name}: ${v.id}: ${v.nodes[0].html} ${v.nodes[0].failureSummary}`), []);
            if (shots) await page.$$eval('details', (all) => all.forEach((d) => { d.open = false; }));
          }
          if (shots && script) await page.screenshot({ path: path.join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
        }
        assert.deepEqual(complaints, []);
        await context.close();
      });
    }
  }
}
