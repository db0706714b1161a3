/** Subscribes a connection to channels, and unsubscribes it from others. Rejects where the connection is lost. */
type Send = (join: readonly string[], leave: readonly string[]) => Promise<unknown>;

interface Connection {
  readonly send: Send;
  readonly joined: Set<string>;
  changing: Promise<void> | undefined;
}

/**
 * The channels that are wanted, and those that the open connection is subscribed to. Changes that are wanted while one is
 * being sent are sent together. A new connection is subscribed to all channels that are wanted.
 */
export class Channels {
  /** How often each channel is wanted. */
  readonly #wanted = new Map<string, number>();
  /** The channels that the connection may have to join or leave. */
  #changed = new Set<string>();
  /** By channel, those that wait until the connection is subscribed to it. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #connection: Connection | undefined;

  constructor(always: readonly string[]) {
    for (const channel of always) this.#wanted.set(channel, 1);
  }

  /** Resolves when the open connection is subscribed to all channels. Rejects where the server refuses, or is lost. */
  async connect(send: Send): Promise<void> {
    this.#connection = { send, joined: new Set(), changing: undefined };
    this.#changed = new Set(this.#wanted.keys());
    await this.#apply(this.#connection);
  }

  /** Resolves when the connection is subscribed to the channel, perhaps a later connection, or when it is left again. */
  join(channel: string): Promise<void> {
    const count = this.#wanted.get(channel) ?? 0;
    this.#wanted.set(channel, count + 1);
    if (count > 0 && this.#connection?.joined.has(channel) === true) return Promise.resolve();
    const joined = new Promise<void>((resolve) => {
      this.#waiting.set(channel, [...(this.#waiting.get(channel) ?? []), resolve]);
    });
    this.#change(channel);
    return joined;
  }

  leave(channel: string): void {
    const count = this.#wanted.get(channel) ?? 0;
    if (count > 1) {
      this.#wanted.set(channel, count - 1);
    } else {
      this.#wanted.delete(channel);
      this.#endWait(channel);
      this.#change(channel);
    }
  }

  #change(channel: string): void {
    this.#changed.add(channel);
    // A lost connection is followed by another one, which is subscribed to everything.
    if (this.#connection !== undefined) void this.#apply(this.#connection).catch(() => {});
  }

  #apply(connection: Connection): Promise<void> {
    connection.changing ??= this.#applyAll(connection);
    return connection.changing;
  }

  async #applyAll(connection: Connection): Promise<void> {
    const { send, joined } = connection;
    // What is wanted in the same turn goes together.
    await Promise.resolve();
    try {
      while (this.#connection === connection && this.#changed.size > 0) {
        const changed = [...this.#changed];
        this.#changed = new Set();
        const join = changed.filter((one) => this.#wanted.has(one) && !joined.has(one));
        const leave = changed.filter((one) => !this.#wanted.has(one) && joined.has(one));
        if (join.length + leave.length > 0) await send(join, leave);
        for (const channel of join) joined.add(channel);
        for (const channel of leave) joined.delete(channel);
        for (const channel of changed) if (joined.has(channel)) this.#endWait(channel);
      }
    } finally {
      connection.changing = undefined;
    }
  }

  #endWait(channel: string): void {
    for (const resolve of this.#waiting.get(channel) ?? []) resolve();
    this.#waiting.delete(channel);
  }
}
