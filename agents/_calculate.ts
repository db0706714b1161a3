import { Type } from '@sinclair/typebox';
import type { MathNode } from 'mathjs';
import { tool } from 'rivulet/llm';

const maxLength = 200;

const functions =
  'abs cbrt ceil exp floor gcd hypot lcm log log10 log1p log2 max mean median min mod nthRoot pow round sign sqrt square std sum variance acos asin atan atan2 cos cosh sin sinh tan tanh';
const constants = 'e phi pi tau';
const names = new Set(`${functions} ${constants}`.split(' '));
const kinds = new Set(['ConstantNode', 'FunctionNode', 'OperatorNode', 'ParenthesisNode', 'SymbolNode']);

/** A tool that calculates what a model asks. */
export const calculator = tool({
  name: 'calculate',
  description: `Calculates an expression with numbers, such as "(1 + 2) * sqrt(9)". Functions: ${functions}. Constants: ${constants}.`,
  input: Type.Object({ expression: Type.String({ maxLength }) }),
  run: async ({ expression }) => ({ result: await evaluate(expression) }),
});

async function evaluate(expression: string): Promise<string> {
  // Imported late, because it is big. The build for numbers has no matrices or big numbers that could fill the memory.
  const { format, parse } = await import('mathjs/number');
  const tree = parse(expression);
  tree.traverse(allow);
  const result: unknown = tree.evaluate();
  if (typeof result !== 'number' || !Number.isFinite(result)) throw new Error('The result is not a finite number.');
  return format(result, { precision: 14 });
}

/**
 * Allows only listed kinds of nodes and names: no assignments, function definitions, ranges or properties. So the length
 * of the expression limits the work, and an expression cannot access anything else.
 */
function allow(node: MathNode): void {
  if (!kinds.has(node.type)) throw new Error(`A ${node.type.replace('Node', '').toLowerCase()} is not allowed.`);
  if ('name' in node && typeof node.name === 'string' && !names.has(node.name)) {
    throw new Error(`${node.name} is not a known function or constant.`);
  }
}
