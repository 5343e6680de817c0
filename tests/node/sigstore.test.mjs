/*
 * Stock Sigstore as the judge of our attestations: a directory sealed by the program must verify with
 * @sigstore/verify and the public key alone, and nothing that was changed may.
 *
 *   CLEANRUN_BUILD_ROOT=build node --test tests/node/sigstore.test.mjs
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';

const root = process.env.CLEANRUN_SOURCE_ROOT ?? path.resolve(import.meta.dirname, '../..');
const build = process.env.CLEANRUN_BUILD_ROOT ?? path.join(root, 'build');
const cleanrun = path.join(build, 'runner/cleanrun');
const makeRun = path.join(build, 'tests/evidence/make_run');
const env = { ...process.env, CLEANRUN_SOURCE_ROOT: root, CLEANRUN_BUILD_ROOT: build };
let dir;
let archive;
let bundle;

before(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cleanrun-sigstore-'));
  execFileSync(makeRun, [dir], { env });
  execFileSync(cleanrun, ['key', 'gen', '--out', path.join(dir, 'keys')], { env, stdio: 'pipe' });
  execFileSync(cleanrun, ['seal', path.join(dir, 'run'), '--key', path.join(dir, 'keys/key.pem'), '--out', path.join(dir, 'evidence.tar')],
    { env, stdio: 'pipe' });
  archive = fs.readFileSync(path.join(dir, 'evidence.tar'));
  bundle = JSON.parse(fs.readFileSync(path.join(dir, 'evidence.tar.sigstore.json'), 'utf8'));
});

after(() => fs.rmSync(dir, { recursive: true, force: true }));

function publicKey(file = path.join(dir, 'keys/pub.pem')) {
  return crypto.createPublicKey(fs.readFileSync(file));
}

/* Throws when the bundle does not verify; returns the statement. The key is looked up by the bundle's own hint. */
function verify(json, data, key = publicKey()) {
  const hint = crypto.createHash('sha256').update(key.export({ type: 'spki', format: 'der' })).digest('base64');
  const trust = toTrustMaterial(TrustedRoot.fromJSON({ mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1' }), (wanted) => {
    assert.equal(wanted, hint);
    return { publicKey: key, validFor: () => true };
  });
  const verifier = new Verifier(trust, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
  const parsed = bundleFromJSON(json);
  verifier.verify(toSignedEntity(parsed, data));
  const statement = JSON.parse(parsed.content.dsseEnvelope.payload);
  const digest = crypto.createHash('sha256').update(data).digest('hex');
  assert.ok(statement.subject.some((s) => s.digest.sha256 === digest), 'the statement is about other bytes');
  return statement;
}

test('a sealed run verifies with its public key', () => {
  const statement = verify(bundle, archive);
  assert.equal(statement._type, 'https://in-toto.io/Statement/v1');
  assert.equal(statement.predicateType, 'https://cleanrun.dev/attestation/run/v1');
  assert.equal(statement.subject[0].name, 'evidence.tar');
});

test('the statement has only the fields that strict readers know', () => {
  const statement = verify(bundle, archive);
  assert.deepEqual(Object.keys(statement).sort(), ['_type', 'predicate', 'predicateType', 'subject']);
  for (const subject of statement.subject) {
    for (const key of Object.keys(subject)) assert.ok(['name', 'digest'].includes(key), key);
    for (const value of Object.values(subject.digest)) assert.match(value, /^[0-9a-f]+$/);
  }
});

test('another key does not verify it', () => {
  const { publicKey: other } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  assert.throws(() => verify(bundle, archive, other));
});

test('no flipped byte of the archive verifies', () => {
  for (let i = 0; i < archive.length; i += 97) {
    const copy = Buffer.from(archive);
    copy[i] ^= 1;
    assert.throws(() => verify(bundle, copy), `byte ${i}`);
  }
});

test('no flipped byte of payload or signature verifies', () => {
  const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64');
  const sig = Buffer.from(bundle.dsseEnvelope.signatures[0].sig, 'base64');
  for (let i = 0; i < payload.length; i += 13) {
    const copy = structuredClone(bundle);
    const bytes = Buffer.from(payload);
    bytes[i] ^= 1;
    copy.dsseEnvelope.payload = bytes.toString('base64');
    assert.throws(() => verify(copy, archive), `payload byte ${i}`);
  }
  for (let i = 0; i < sig.length; i++) {
    const copy = structuredClone(bundle);
    const bytes = Buffer.from(sig);
    bytes[i] ^= 1;
    copy.dsseEnvelope.signatures[0].sig = bytes.toString('base64');
    assert.throws(() => verify(copy, archive), `signature byte ${i}`);
  }
});

test('another payload type does not verify', () => {
  const copy = structuredClone(bundle);
  copy.dsseEnvelope.payloadType = 'application/json';
  assert.throws(() => verify(copy, archive));
});

test('the plain envelope carries the same statement and signature', () => {
  const envelope = JSON.parse(fs.readFileSync(path.join(dir, 'evidence.tar.dsse.json'), 'utf8'));
  assert.deepEqual(envelope, bundle.dsseEnvelope);
});

test('our own verifier agrees, and disagrees about a flipped byte', () => {
  const pub = path.join(dir, 'keys/pub.pem');
  const flipped = path.join(dir, 'flipped.tar');
  const copy = Buffer.from(archive);
  copy[700] ^= 1;
  fs.writeFileSync(flipped, copy);
  fs.copyFileSync(path.join(dir, 'evidence.tar.dsse.json'), `${flipped}.dsse.json`);
  assert.equal(spawnSync(cleanrun, ['verify', path.join(dir, 'evidence.tar'), '--key', pub], { env }).status, 0);
  assert.equal(spawnSync(cleanrun, ['verify', flipped, '--key', pub], { env }).status, 5);
});
