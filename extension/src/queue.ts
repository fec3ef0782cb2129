/** Runs jobs one after another, in the order in which they came; one that fails does not hold up the next. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(job: () => Promise<T>): Promise<T> {
    const next = this.#last.then(job);
    this.#last = next.catch(() => undefined);
    return next;
  }
}
