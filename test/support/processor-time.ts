/** Milliseconds that this process has had on the processor. Other load changes them little, unlike those of a clock. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
