import { describe, expect, it } from 'vitest';
import { type AgentTool, defineAgent, Registry } from '../../src/index.ts';

const tool = (name: string, more: AgentTool) =>
  defineAgent({ name, description: 'A tool.', metadata: { tool: more } }, () => []);
const hosted = (...agents: ReturnType<typeof tool>[]) =>
  agents.map((agent) => ({ agent, source: `agents/${agent.manifest.name}.ts` }));

describe('the tool of an agent', () => {
  it('has a name of its own, or that of the agent', () => {
    const registry = new Registry(hosted(tool('one', { name: 'first_one' }), tool('two', {})));
    expect(registry.findTool('first_one')?.manifest.name).toBe('one');
    expect(registry.findTool('two')?.manifest.name).toBe('two');
    expect(registry.findTool('one')).toBeUndefined();
  });

  it('is refused at the start where its name is that of another tool', () => {
    const agents = hosted(tool('one', { name: 'two' }), tool('two', {}));
    expect(() => new Registry(agents)).toThrow(
      'agents/two.ts: tool name "two" of agent "two" is already that of agent "one" in agents/one.ts; rename one in metadata.tool.name',
    );
  });

  it.each(['input_schema', 'output_schema'] as const)(
    'is refused where its %s is no JSON Schema of an object',
    (field) => {
      expect(() => tool('one', { [field]: { type: 'string' } })).toThrow(
        `manifest.metadata.tool.${field}.type: expected "object", got "string"`,
      );
      const invalid = tool('one', { [field]: { type: 'object', properties: { a: { type: 'nothing' } } } });
      expect(() => new Registry(hosted(invalid))).toThrow(
        `agents/one.ts: agent "one": metadata.tool.${field} is no JSON Schema`,
      );
    },
  );

  it.each([
    ['has a space', { a: { type: 'string', 'x-mcp-header': 'A B' } }, 'a: x-mcp-header: expected the characters'],
    [
      'is of an object',
      { a: { type: 'object', 'x-mcp-header': 'A' } },
      'a: x-mcp-header: expected a property of the type',
    ],
    [
      'is in a list',
      { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } },
      'a.items: x-mcp-header: expected at a property',
    ],
    [
      'is that of another property',
      { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } },
      'x-mcp-header: two properties have "a"',
    ],
  ])('is refused where a header of its schema %s', (_, properties, problem) => {
    const invalid = tool('one', { input_schema: { type: 'object', properties } });
    expect(() => new Registry(hosted(invalid))).toThrow(
      `agents/one.ts: agent "one": metadata.tool.input_schema: ${problem}`,
    );
  });

  it('keeps the agents of before where new ones are refused', () => {
    const registry = new Registry(hosted(tool('one', {})));
    expect(() => registry.replace(hosted(tool('two', { name: 'x' }), tool('three', { name: 'x' })))).toThrow('"x"');
    expect([registry.find('one'), registry.findTool('one')]).not.toContain(undefined);
  });
});
