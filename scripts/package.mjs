// Builds twinlens-VERSION.vsix, the extension as one file.
import { statSync } from "node:fs";
import { relative } from "node:path";
import { runEntryPoint } from "./lib/errors.mjs";
import { checkout } from "./lib/paths.mjs";
import { prepare } from "./lib/prepare.mjs";
import { say } from "./lib/say.mjs";
import { buildVsix } from "./vsix/build.mjs";

await runEntryPoint(async () => {
  const file = await buildVsix(await prepare());
  say(`Packaged ${relative(checkout, file)} (${Math.round(statSync(file).size / 1024)} KiB).`);
});
