/** `work`, or after `milliseconds` the error of `late`, which may also tell whoever works that nobody waits any more. */
export async function within<T>(milliseconds: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const lateness = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  try {
    return await Promise.race([work, lateness]);
  } finally {
    clearTimeout(timer);
  }
}
