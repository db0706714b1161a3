import { chmodSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hashOfKey, keyIdOf, makeApiKey } from '../../../src/http/auth/api-key.ts';
import { parseKeyFile } from '../../../src/http/auth/key-file.ts';
import { checkKeyRecords, parseKeyPairs, recordOf } from '../../../src/http/auth/key-records.ts';
import { KeyRing } from '../../../src/http/auth/key-ring.ts';
import { WatchedFile } from '../../../src/http/auth/watched-file.ts';
import { newFolder } from '../../support/folder.ts';

const changedAt = (text: string, at: number): string => {
  const other = text.charAt(at) === 'A' ? 'B' : 'A';
  return text.slice(0, at) + other + text.slice(at + 1);
};

describe('an API key', () => {
  it('has a form that scanners of leaked secrets find, and an id', () => {
    for (let count = 0; count < 200; count += 1) {
      const { id, key } = makeApiKey();
      expect(key).toMatch(/^rvk_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}$/);
      expect(keyIdOf(key)).toBe(id);
    }
  });

  it('has a checksum, which finds every single wrong character without a look-up', () => {
    const { key } = makeApiKey();
    for (let at = 0; at < key.length; at += 1) expect(keyIdOf(changedAt(key, at))).toBeUndefined();
    for (const text of ['', 'rvk_', key.slice(0, -1), `${key}A`, ` ${key}`]) expect(keyIdOf(text)).toBeUndefined();
  });

  it('is another one each time', () => {
    const all = Array.from({ length: 100 }, () => makeApiKey().key);
    expect(new Set(all).size).toBe(100);
  });
});

describe('the ring of keys', () => {
  it('knows the principal of each key, and of a principal with several keys', () => {
    const [first, second] = [makeApiKey().key, makeApiKey().key];
    const ring = new KeyRing();
    ring.replace([
      recordOf(first, { principal: 'alice' }),
      recordOf(second, { principal: 'alice', scopes: ['admin'] }),
    ]);
    expect(ring.verify(first)).toMatchObject({ id: 'alice', kind: 'key' });
    expect(ring.verify(second)).toMatchObject({ id: 'alice', scopes: ['admin'] });
  });

  it('refuses unknown keys, and another key under a known id', () => {
    const known = makeApiKey();
    const ring = new KeyRing();
    ring.replace([{ ...recordOf(makeApiKey().key, { principal: 'alice' }), id: known.id }]);
    expect(ring.verify(known.key)).toBeUndefined();
    expect(ring.verify(makeApiKey().key)).toBeUndefined();
    expect(ring.verify('rvk_nonsense')).toBeUndefined();
  });

  it('accepts a key only within its time', () => {
    const { key } = makeApiKey();
    const ring = new KeyRing();
    const record = recordOf(key, { principal: 'alice' });
    const verified = (times: object): boolean => {
      ring.replace(checkKeyRecords([{ ...record, ...times }]));
      return ring.verify(key) !== undefined;
    };
    const [past, future] = [new Date(Date.now() - 3_600_000), new Date(Date.now() + 3_600_000)].map((time) =>
      time.toISOString(),
    );
    expect(verified({ not_before: past, expires_at: future })).toBe(true);
    expect(verified({ expires_at: past })).toBe(false);
    expect(verified({ not_before: future })).toBe(false);
  });
});

describe('a file of keys', () => {
  const record = recordOf(makeApiKey().key, { principal: 'alice' });

  it('may be YAML or JSON', () => {
    const yaml = `- id: ${record.id}\n  sha256: ${record.sha256}\n  principal: alice\n  scopes: [runs:read]\n  note: laptop\n`;
    expect(parseKeyFile(yaml)).toEqual([{ ...record, scopes: ['runs:read'], note: 'laptop' }]);
    expect(parseKeyFile(JSON.stringify([record]))).toEqual([record]);
    expect(parseKeyFile('')).toEqual([]);
  });

  it.each([
    ['a field that is misspelt', [{ ...record, expires: '2027-01-01T00:00:00Z' }], /keys\[0\]\.expires/],
    ['a time without a zone', [{ ...record, expires_at: '2027-01-01' }], /keys\[0\]\.expires_at: expected a time/],
    ['a key instead of its hash', [{ ...record, sha256: 'rvk_' }], /keys\[0\]\.sha256/],
    ['a record without scopes', [{ ...record, scopes: undefined }], /keys\[0\]\.scopes: is required/],
    ['the same id twice', [record, record], /twice/],
    ['a principal that no store would take', [{ ...record, principal: '\ud800' }], /half of a character/],
    ['something else than a list', { keys: [record] }, /expected array/i],
  ])('is refused with %s, and the error names the place', (_name, value, problem) => {
    expect(() => parseKeyFile(JSON.stringify(value))).toThrow(problem);
  });

  it('is refused where it is not YAML, or multiplies its aliases', () => {
    expect(() => parseKeyFile('- {')).toThrow(/expected YAML or JSON/);
    const bomb = [
      'a: &a [1,1,1,1,1,1,1,1,1]',
      ...[...'bcdefgh'].map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[at]}`)}]`),
    ];
    expect(() => parseKeyFile(bomb.join('\n'))).toThrow(/alias/i);
  });

  it('may come as pairs in the environment, and errors do not repeat the keys', () => {
    const { key } = makeApiKey();
    expect(parseKeyPairs(` alice=${key} , `)).toEqual([recordOf(key, { principal: 'alice' })]);
    expect(parseKeyPairs('')).toEqual([]);
    for (const wrong of [key, `=${key}`, `alice=${changedAt(key, 20)}`]) {
      expect(() => parseKeyPairs(wrong)).toThrow(/pair 1: expected PRINCIPAL=KEY/);
      expect(() => parseKeyPairs(wrong)).not.toThrow(key.slice(13, 40));
    }
  });

  it('has the hash of the key, as sha256sum prints it', () => {
    expect(hashOfKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});

describe('a watched file', () => {
  function watched(path: string) {
    const problems: string[] = [];
    const file = new WatchedFile({
      path,
      parse: (text): unknown => JSON.parse(text),
      onProblem: ({ message }) => problems.push(message),
    });
    onTestFinished(() => file.close());
    return { file, problems };
  }

  it('is read again after each change, also where a link moves to another file', () => {
    const dir = newFolder(onTestFinished);
    const [link, path] = [join(dir, 'link'), join(dir, 'keys.json')];
    writeFileSync(join(dir, 'one'), '1');
    writeFileSync(join(dir, 'two'), '2');
    symlinkSync(join(dir, 'one'), path);
    const { file } = watched(path);
    expect(file.value).toBe(1);
    // As Kubernetes does it.
    symlinkSync(join(dir, 'two'), link);
    renameSync(link, path);
    file.check();
    expect(file.value).toBe(2);
    writeFileSync(join(dir, 'two'), '"three"');
    file.check();
    expect(file.value).toBe('three');
  });

  it('keeps its last value while it is broken or missing, and reports each state once', () => {
    const path = join(newFolder(onTestFinished), 'keys.json');
    writeFileSync(path, '1');
    const { file, problems } = watched(path);
    writeFileSync(path, '{ "no');
    for (let count = 0; count < 3; count += 1) file.check();
    expect(problems).toHaveLength(1);
    rmSync(path);
    for (let count = 0; count < 3; count += 1) file.check();
    expect(problems).toHaveLength(2);
    expect(problems[1]).toContain('ENOENT');
    expect(file.value).toBe(1);
    writeFileSync(path, '22');
    file.check();
    expect(file.value).toBe(22);
  });

  it('is refused at the start where it is missing, or other users may write it', () => {
    const path = join(newFolder(onTestFinished), 'keys.json');
    expect(() => watched(path)).toThrow(/keys\.json: ENOENT/);
    writeFileSync(path, '1');
    chmodSync(path, 0o666);
    expect(() => watched(path)).toThrow(/other users may write it \(mode 666\); run chmod go-w/);
  });
});
