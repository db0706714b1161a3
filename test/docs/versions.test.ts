import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import rivulet from '../../package.json' with { type: 'json' };
import newest from '../protocols/newest-clients/package.json' with { type: 'json' };

/** The versions with which the tests run. The package of an alias is the one that it stands for. */
const tested: readonly (readonly [name: string, version: string])[] = [
  ...Object.entries(rivulet.devDependencies),
  ...Object.entries(newest.dependencies),
].map(([name, version]) => {
  const [, of, aliased] = /^npm:(.+)@(.+)$/.exec(version) ?? [];
  return [of ?? name, aliased ?? version] as const;
});
const versionsOf = (name: string): string[] => tested.filter(([one]) => one === name).map(([, version]) => version);
const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');
/** A sentence of a page, in one line. */
const sentence = (page: string, start: string): string => {
  const text = readFileSync(`docs/${page}`, 'utf8').replaceAll('\n', ' ');
  const [found = ''] = text.slice(text.indexOf(start)).split(/\. [A-Z]/, 1);
  return found;
};

describe('the versions that the docs name', () => {
  it.each(['openai', '@ai-sdk/openai', '@ai-sdk/open-responses', '@langchain/openai', '@openai/agents'])(
    'of %s are those of the tests',
    (name) => {
      const versions = versionsOf(name).map(minorOf);
      expect(versions).toHaveLength(2);
      expect(sentence('openai.md', 'The tests use')).toContain(`\`${name}\` ${versions.join(' and ')}`);
    },
  );

  it('of ai are those of the tests', () => {
    const named = sentence('ai-sdk.md', 'the tests run').match(/\d+\.\d+\.\d+/g);
    expect(named?.toSorted()).toEqual(versionsOf('ai').toSorted());
  });
});
