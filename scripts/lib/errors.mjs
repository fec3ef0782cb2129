/** Something that the person at the terminal can put right: printed as its one message, without a stack. */
export class UserError extends Error {}

/**
 * Runs an entry point and turns its outcome into the process's exit code.
 * @param {() => Promise<number | void>} main
 */
export async function runEntryPoint(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    console.error(`\n${error.message}`);
    process.exitCode = 2;
  }
}
