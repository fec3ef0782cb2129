const MINUTES_THAT_COUNT = 3;
const DELAYS_MILLISECONDS = [0, 1_000, 4_000, 15_000] as const;

/**
 * How long to wait before the server is started again after the last of `crashes` (times in milliseconds, ascending):
 * longer each time; undefined once it crashed more often in a few minutes than there are delays.
 */
export function backOff(crashes: readonly number[]): number | undefined {
  const last = crashes.at(-1) ?? 0;
  const recent = crashes.filter((crash) => last - crash < MINUTES_THAT_COUNT * 60_000);
  return DELAYS_MILLISECONDS[recent.length - 1];
}
