/** What a check found. A problem keeps a server from working or makes it unsafe; a note is for the operator to judge. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'problem';
  readonly text: string;
  /** What to do about it. */
  readonly advice?: string;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const note = (text: string, advice?: string): Finding => ({ level: 'note', text, ...(advice && { advice }) });
export const problem = (text: string, advice: string): Finding => ({ level: 'problem', text, advice });
