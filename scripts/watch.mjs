// Bundles again after each change, for a VS Code that runs the extension from this checkout (F5).
import { join } from "node:path";
import { runEntryPoint } from "./lib/errors.mjs";
import { checkout } from "./lib/paths.mjs";
import { prepare } from "./lib/prepare.mjs";
import { run } from "./lib/run.mjs";

await runEntryPoint(async () => {
  const { node } = await prepare();
  return run([node, join(checkout, "scripts", "bundle.mjs"), "--watch"]);
});
