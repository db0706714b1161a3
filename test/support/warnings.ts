import { onTestFinished } from 'vitest';
import { turn } from './turn.ts';

/** The warnings of Node during this test; resolves in a later turn, because Node warns in a turn of its own. */
export function warningsOfNode(): () => Promise<string[]> {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): number => warnings.push(message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return async () => {
    await turn();
    return warnings;
  };
}
