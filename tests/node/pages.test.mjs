/*
 * The pages in a real browser: every example document (tests/data/pages) is rendered by the C tool
 * tests/server/render and opened in Chromium, JavaScript off and on, light and dark, on a desk and a phone.
 * Judges: axe-core, html-validate, and the documents themselves (numbers).
 *
 *   CLEANRUN_BUILD_ROOT=build node --test tests/node/pages.test.mjs
 * CLEANRUN_SHOTS=DIR also writes a screenshot of each.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { chromium } from 'playwright-core';
import { FileSystemConfigLoader, HtmlValidate } from 'html-validate';

const root = process.env.CLEANRUN_SOURCE_ROOT ?? path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../..');
const build = process.env.CLEANRUN_BUILD_ROOT ?? path.join(root, 'build');
const render = path.join(build, 'tests/server/render');
const documents = path.join(root, 'tests/data/pages');
const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const css = fs.readFileSync(path.join(root, 'web/style.css'));
const shots = process.env.CLEANRUN_SHOTS;

const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/* Which page shows an example: its name up to the first '-', but for these. */
function pageOf(name) {
  if (name.startsWith('refusal')) return 'compare';
  if (name === 'invalid') return 'error';
  return name.split('-')[0];
}

const examples = fs.readdirSync(documents).filter((f) => f.endsWith('.json')).sort().map((file) => {
  const name = file.replace(/\.json$/, '');
  const document = path.join(documents, file);
  const run = (suffix, ...more) =>
    execFileSync(render, ['--base', 'http://cleanrun.test', ...more, `${pageOf(name)}.${suffix}`, document], { encoding: 'utf8', maxBuffer: 1 << 24 });
  return { name, json: JSON.parse(fs.readFileSync(document, 'utf8')), html: run('html'), text: run('txt'), prefixed: run('html', '--base', 'https://host.test/below/') };
});

let server;
let browser;
let origin;

before(async () => {
  server = http.createServer((request, response) => {
    const example = examples.find((e) => `/${e.name}` === request.url);
    response.setHeader('Content-Security-Policy', CSP);
    if (request.url === '/web/style.css') {
      response.setHeader('Content-Type', 'text/css');
      response.end(css);
    } else if (example) {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      response.end(example.html);
    } else {
      response.statusCode = 404;
      response.end('no such page');
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
});

after(async () => {
  await browser?.close();
  server?.close();
});

test('examples of every page exist', () => {
  const pages = new Set(examples.map((e) => pageOf(e.name)));
  for (const page of ['home', 'project', 'gate', 'run', 'compare', 'commit', 'baselines', 'baseline', 'help', 'reason', 'error'])
    assert.ok(pages.has(page), page);
});

test('html-validate finds nothing', async () => {
  const validate = new HtmlValidate(new FileSystemConfigLoader({ root: true, extends: ['html-validate:recommended', 'html-validate:a11y'] }));
  for (const example of examples) {
    const report = await validate.validateString(example.html);
    const found = report.results.flatMap((r) => r.messages.map((m) => `${example.name}:${m.line}: ${m.ruleId}: ${m.message}`));
    assert.deepEqual(found, []);
  }
});

test('pages and style sheet stay within their budgets', () => {
  assert.ok(zlib.gzipSync(css, { level: 9 }).length <= 4096);
  for (const example of examples)
    assert.ok(zlib.gzipSync(example.html, { level: 9 }).length <= 30 * 1024, example.name);
});

/* Every number of a document, for look-ups; derived ones a page may show too are none. */
function numbersOf(value, found = new Set()) {
  if (typeof value === 'number') found.add(value);
  else if (Array.isArray(value)) value.forEach((v) => numbersOf(v, found));
  else if (value && typeof value === 'object') Object.values(value).forEach((v) => numbersOf(v, found));
  return found;
}

const SCALE = { 'µs': 1e3, ms: 1e6, s: 1e9, KiB: 1024, MiB: 1048576, GiB: 1073741824 };

test('every number on a page is a number of its document, and reads the same', async () => {
  const context = await browser.newContext({ javaScriptEnabled: true });
  const page = await context.newPage();
  let checked = 0;
  for (const example of examples) {
    const numbers = numbersOf(example.json);
    await page.goto(`${origin}/${example.name}`);
    const shown = await page.$$eval('data', (nodes) => nodes.map((n) => {
      const next = n.nextSibling?.nodeType === 3 ? n.nextSibling.textContent.trim().split(/[\s,;]/)[0] : '';
      return { value: n.value, text: n.textContent, unit: next };
    }));
    for (const { value, text, unit } of shown) {
      const exact = Number(value);
      assert.ok(numbers.has(exact), `${example.name}: ${value} is not in the document`);
      const digits = text.replace(/−/g, '-').replace(/[,+ %]/g, '');
      const read = Number(digits);
      const half = 0.5000001 * 10 ** -(digits.split('.')[1]?.length ?? 0);
      const candidates = [1, 1000, 1024, SCALE[unit] ?? 1, (SCALE[unit] ?? 1) / 1e6, (SCALE[unit] ?? 1) / 1e9].map((s) => exact / s);
      /* A tolerance of a metric that gets worse downwards is shown negative. */
      const close = candidates.some((c) => Math.abs(Math.abs(c) - Math.abs(read)) <= half);
      assert.ok(close, `${example.name}: "${text} ${unit}" for ${value}`);
      checked++;
    }
  }
  assert.ok(checked > 200, `${checked} numbers`);
  await context.close();
});

test('a refusal shows no percentage and no number of the run', () => {
  const refusal = examples.find((e) => e.name === 'refusal');
  const body = refusal.html.slice(refusal.html.indexOf('<main'), refusal.html.indexOf('</main>'));
  assert.doesNotMatch(body, /[0-9]\s*%/);
  assert.doesNotMatch(refusal.text, /[0-9]\s*%/);
  assert.match(body, /5000, <del>20000<\/del>, 50000/);
  assert.match(body, /5000, <ins>\(absent\)<\/ins>, 50000/);
});

test('below a path, every local link keeps it', () => {
  for (const example of examples) {
    const links = [...example.prefixed.matchAll(/(?:href|src)="([^"]*)"/g)].map((m) => m[1]);
    for (const link of links)
      assert.ok(link.startsWith('#') || link === 'data:,' || link.startsWith('/below/'), `${example.name}: ${link}`);
  }
});

test('text twins are plain and say the verdict first', () => {
  for (const example of examples)
    assert.doesNotMatch(example.text, /<[a-z]|&(amp|lt|#39|quot);/i, example.name);
  for (const [name, word] of [['run-ok', 'OK'], ['run-fail', 'FAIL'], ['run-damaged', 'DAMAGED'], ['compare-regression', 'REGRESSION'], ['refusal', 'NON_COMPARABLE'], ['invalid', 'INVALID']])
    assert.ok(examples.find((e) => e.name === name).text.split('\n')[0].includes(word), name);
});

for (const script of [false, true]) {
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 320]) {
      test(`no barrier, no sideways scroll: ${scheme}, ${width} px, script ${script ? 'on' : 'off'}`, async () => {
        /* axe itself needs scripts; with scripts off only layout and completeness are looked at. */
        const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, javaScriptEnabled: script, bypassCSP: script });
        const page = await context.newPage();
        const complaints = [];
        page.on('console', (m) => complaints.push(m.text()));
        page.on('pageerror', (e) => complaints.push(String(e)));
        page.on('requestfailed', (r) => complaints.push(r.url()));
        for (const example of examples) {
          await page.goto(`${origin}/${example.name}`);
          if (script) {
            await page.$$eval('details', (all) => all.forEach((d) => { d.open = true; }));
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.ok(wide <= 0, `${example.name} is ${wide} px too wide`);
            await page.evaluate(axe);
            const result = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
            const found = result.violations.map((v) => `${example.name}: ${v.id}: ${v.nodes[0].html} ${v.nodes[0].failureSummary}`);
            assert.deepEqual(found, []);
          } else {
            const headings = await page.locator('h1').count();
            assert.equal(headings, 1, example.name);
            assert.ok((await page.locator('main').innerText()).length > 20, example.name);
          }
          if (shots && script) await page.$$eval('details', (all) => all.forEach((d) => { d.open = false; }));
          if (shots) await page.screenshot({ path: path.join(shots, `${example.name}-${scheme}-${width}.png`), fullPage: true });
        }
        assert.deepEqual(complaints, []);
        await context.close();
      });
    }
  }
}

test('with the style sheet blocked nothing is missing', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.route('**/style.css', (route) => route.abort());
  await page.goto(`${origin}/run-fail`);
  const text = await page.locator('main').innerText();
  assert.match(text, /FAIL/);
  assert.match(text, /results\.calls_succeeded/);
  await context.close();
});
