import { expect, it } from 'vitest';
import { RivuletError } from '../../src/core/errors.ts';
import { checkAgainst } from '../../src/engine/json-schema.ts';
import { processorTime } from '../support/processor-time.ts';

const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
const clock = new Int32Array(new SharedArrayBuffer(4));

/** A value whose check waits without the processor the first `times` times, as on a machine with other load. */
function valueThatWaits(times: number, amount: unknown) {
  let waits = 0;
  const value = {
    get amount() {
      if (waits < times) {
        waits += 1;
        // Until the check is stopped.
        Atomics.wait(clock, 0, 0, 60_000);
      }
      return amount;
    },
  };
  return { value, waits: () => waits };
}

function checkOf(value: unknown): RivuletError | undefined {
  try {
    checkAgainst(schema, { path: 'arguments', value, chars: 20 });
    return undefined;
  } catch (error) {
    if (error instanceof RivuletError) return error;
    throw error;
  }
}

it('a value is checked again where its check did not get the processor in time', () => {
  const good = valueThatWaits(1, 3);
  expect(checkOf(good.value)).toBeUndefined();
  expect(good.waits()).toBe(1);
  expect(checkOf(valueThatWaits(1, 'three').value)?.message).toBe('arguments/amount: must be number.');
});

it('a value whose check never gets the processor is not called invalid, and may be sent again', () => {
  const refusal = checkOf(valueThatWaits(Number.POSITIVE_INFINITY, 3).value);
  expect(refusal?.toJSON()).toMatchObject({ code: 'server_error', data: { reason: 'too_busy' } });
  expect(refusal?.message).toBe('The machine has no processor time to check arguments; try again soon.');
});

it('a check that has used its processor time is not repeated', () => {
  const started = processorTime();
  const value = {
    get amount() {
      for (;;);
    },
  };
  expect(checkOf(value)?.message).toBe('arguments: takes more than 250 ms to check; send something shorter.');
  // Twice the limit where it was stopped just before most of it was used.
  expect(processorTime() - started).toBeLessThan(1_000);
});
