import type { MathNode } from 'mathjs';
import type { RunnableFunctionWithoutParse } from 'openai/lib/RunnableFunction';

const maxLength = 200;

const functions =
  'abs cbrt ceil exp floor gcd hypot lcm log log10 log1p log2 max mean median min mod nthRoot pow round sign sqrt square std sum variance acos asin atan atan2 cos cosh sin sinh tan tanh';
const constants = 'e phi pi tau';
const names = new Set(`${functions} ${constants}`.split(' '));
const kinds = new Set(['ConstantNode', 'FunctionNode', 'OperatorNode', 'ParenthesisNode', 'SymbolNode']);

/** The tool's description for the model. */
export const calculator = {
  name: 'calculate',
  description: `Calculates an expression with numbers, such as "(1 + 2) * sqrt(9)". Functions: ${functions}. Constants: ${constants}.`,
  parameters: {
    type: 'object',
    properties: { expression: { type: 'string', maxLength } },
    required: ['expression'],
  },
} satisfies Omit<RunnableFunctionWithoutParse, 'function'>;

interface Calculation {
  readonly input: Record<string, unknown>;
  readonly output: { readonly result: string } | { readonly error: string };
}

/** The input and the result of a call. An error is a result, too, so that the model can correct its next call. */
export async function calculate(args: string): Promise<Calculation> {
  const input = parseArgs(args);
  try {
    return { input, output: { result: await evaluate(input.expression) } };
  } catch (error) {
    return { input, output: { error: error instanceof Error ? error.message.slice(0, maxLength) : String(error) } };
  }
}

function parseArgs(args: string): Record<string, unknown> {
  try {
    const input: unknown = JSON.parse(args);
    if (typeof input === 'object' && input !== null) return { ...input };
  } catch {
    // Small models write invalid JSON; `evaluate` returns an error for it.
  }
  return { arguments: args.slice(0, maxLength) };
}

async function evaluate(expression: unknown): Promise<string> {
  if (typeof expression !== 'string') throw new Error('Send {"expression": "…"}.');
  if (expression.length > maxLength) throw new Error(`An expression has at most ${maxLength} characters.`);
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
