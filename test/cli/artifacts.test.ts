import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArtifactFolder, fileName, saveArtifact } from '../../src/cli/terminal/artifacts.ts';
import { newFolder } from '../support/folder.ts';
import { processorTime } from '../support/processor-time.ts';

const text = (name: string, content = 'x') => ({ name, content_type: 'text/plain', content });

describe('the file name of an artifact', () => {
  it.each([
    ['plain.csv', 'plain.csv'],
    ['../../etc/passwd', 'passwd'],
    ['a\\b\\c.txt', 'c.txt'],
    ['.bashrc', '_bashrc'],
    ['..hidden', '_hidden'],
    ['-rf', '_rf'],
    ['..', 'part.txt'],
    ['', 'part.txt'],
    ['nul', '_nul'],
    ['CON.txt', '_CON.txt'],
    ['com1.tar.gz', '_com1.tar.gz'],
    ['LPT³', '_LPT³'],
    ['console.txt', 'console.txt'],
    ['name. . ', 'name'],
    ['a\u202efdp.exe', 'a_fdp.exe'],
    ['a\u009b2Jb:c?.txt', 'a_2Jb_c_.txt'],
  ])('%j becomes %j', (name, file) => {
    expect(fileName({ name })).toBe(file);
  });

  it.each([
    ['x'.repeat(5_000), '.csv'],
    ['世'.repeat(300), '.csv'],
    ['🌊'.repeat(300), '.csv'],
    ['x', `.${'y'.repeat(500)}`],
  ])('has at most 120 bytes, of whole characters: %#', (stem, extension) => {
    const name = fileName({ name: `${stem}${extension}` });
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(120);
    expect(Buffer.from(name).toString()).toBe(name);
    expect(name).not.toContain('\ufffd');
    if (extension === '.csv') expect(name.endsWith('.csv')).toBe(true);
  });

  it('is made in time that grows with the length of the name', () => {
    const started = processorTime();
    expect(fileName({ name: `${' .'.repeat(60_000)}a` })).toHaveLength(120);
    // Quadratic, it would take fifteen seconds.
    expect(processorTime() - started).toBeLessThan(5_000);
  });
});

describe('an artifact folder', () => {
  it('saves artifacts under any name that an agent chooses', () => {
    const folder = newFolder(onTestFinished);
    const artifacts = new ArtifactFolder(folder);
    const names = ['世'.repeat(300), 'x'.repeat(300), '.', '.profile', 'aux.h', 'a\0b', '\ud800'];
    for (const name of names) expect(artifacts.save(text(name))).toMatch(/^saved as /);
    expect(readdirSync(folder)).toHaveLength(names.length);
    expect(artifacts.failures).toBe(0);
  });

  it('overwrites no file, and continues counting for each artifact of the same name', () => {
    const folder = newFolder(onTestFinished);
    writeFileSync(join(folder, 'a.csv'), 'mine');
    const artifacts = new ArtifactFolder(folder);
    const save = (name: string): string => artifacts.save(text(name)).slice(`saved as ${folder}/`.length);
    expect([save('a.csv'), save('a.csv'), save('A.csv'), save('b.csv')]).toEqual([
      'a-2.csv',
      'a-3.csv',
      'A-4.csv',
      'b.csv',
    ]);
    // Counting from 1 would find this free number.
    rmSync(join(folder, 'a-2.csv'));
    expect(save('a.csv')).toBe('a-5.csv');
    expect(readFileSync(join(folder, 'a.csv'), 'utf8')).toBe('mine');
  });

  it('counts a file that cannot be written, and does not throw', () => {
    const folder = newFolder(onTestFinished);
    writeFileSync(join(folder, 'file'), '');
    const artifacts = new ArtifactFolder(join(folder, 'file'));
    expect(saveArtifact(text('a.csv'), artifacts)).toMatch(/^a\.csv \(text\/plain, 1 bytes\) was not saved: E\w+/);
    expect(artifacts.failures).toBe(1);
    expect(saveArtifact({ name: 'far', content_url: 'https://far.example/x' }, artifacts)).toBe(
      'far (text/plain, https://far.example/x)',
    );
    expect(artifacts.failures).toBe(1);
  });
});
