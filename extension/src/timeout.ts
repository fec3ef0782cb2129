/** What a person reads when the server does not answer. */
export class NoAnswer extends Error {
  constructor(what: string, milliseconds: number) {
    super(
      `The Twinlens server did not answer ${what} within ${milliseconds / 1000} s. Restart it, or look at its logs.`,
    );
    this.name = "NoAnswer";
  }
}

/** `work`, given up after `milliseconds`: `abandon` is called then, to tell whoever works that nobody waits any more. */
export async function within<T>(
  milliseconds: number,
  what: string,
  work: Promise<T>,
  abandon: () => void = () => undefined,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      abandon();
      reject(new NoAnswer(what, milliseconds));
    }, milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
