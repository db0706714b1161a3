import { describe } from 'vitest';
import { nodes } from '../support/nodes.ts';
import { agents, countReadersOfAllNodes } from './readers-of-nodes.ts';

describe('two nodes of one store', () => {
  countReadersOfAllNodes(async () => {
    const { node, queue } = nodes(agents);
    queue.next = 'a';
    return [await node('a'), await node('b')];
  });
});
