// The package has no types. This is what its test uses.
declare module 'zen-observable' {
  interface Observer {
    next(value: unknown): void;
    complete(): void;
  }
  export default class Observable {
    constructor(subscribe: (observer: Observer) => () => unknown);
  }
}
