/** What a client shows of the three turns with `chat`, in its own words. */
export interface Seen {
  readonly working: string;
  readonly end: string;
  readonly reload: string;
  readonly again: string;
}

/** The cells of a client's row. */
export const cellsOf = ({ working, end, reload, again }: Seen): string[] => [
  working,
  end,
  reload === end ? 'the same' : reload,
  again,
];

export const listed = (things: readonly string[]): string => (things.length === 0 ? 'nothing' : things.join(', '));

/** Of a client that has nothing to load: its chats are kept by the code around it. */
export const keepsNothing = 'keeps no chat';
