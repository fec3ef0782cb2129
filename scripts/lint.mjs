// Lint, format and types of both languages, and the layer rule. Mends nothing.
import { failures, lintChecks } from "./lib/checks.mjs";
import { runEntryPoint } from "./lib/errors.mjs";
import { prepare } from "./lib/prepare.mjs";
import { say } from "./lib/say.mjs";

await runEntryPoint(async () => {
  const failed = await failures(lintChecks(await prepare()));
  if (failed.length > 0) say(`\nFailed: ${failed.join(", ")}`);
  return failed.length > 0 ? 1 : 0;
});
