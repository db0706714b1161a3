import { it } from 'vitest';
import { nodes } from '../../support/nodes.ts';
import { agents, expectTheSameElsewhere } from './elsewhere.ts';

it('a chat shows the same where each reconnect lands on another node', async () => {
  const { node } = nodes(agents);
  const urls: string[] = [];
  for (const name of ['a', 'b', 'c']) urls.push((await node(name, { protocols: ['ai-sdk'] })).url);
  await expectTheSameElsewhere(urls, [600]);
});
