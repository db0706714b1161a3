declare module 'cluster-key-slot' {
  /** The slot of a key, from 0 to 16383. */
  export default function calculateSlot(key: string): number;
}
