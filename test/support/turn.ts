/** Resolves in a later turn of the event loop, when promises have settled and what was due has run. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function turns(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await turn();
}
