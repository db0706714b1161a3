/** Milliseconds in which one error is told, and the others are not: most say once more that the server is away. */
const quiet = 10_000;

/** Tells of errors, but not of all where they come in a flood. */
export function seldom(tell: (error: unknown) => void): (error: unknown) => void {
  let next = 0;
  return (error) => {
    const now = performance.now();
    if (now < next) return;
    next = now + quiet;
    tell(error);
  };
}
