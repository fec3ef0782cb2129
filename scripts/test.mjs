// Every layer of tests, the Python ones last; `npm test -- --only e2e,lint` runs some of them.
import { join } from "node:path";
import { failures, lintChecks } from "./lib/checks.mjs";
import { runEntryPoint } from "./lib/errors.mjs";
import { testOptions } from "./lib/options.mjs";
import { nodeModules, venvPython } from "./lib/paths.mjs";
import { prepare } from "./lib/prepare.mjs";
import { heading, say, seconds } from "./lib/say.mjs";

/** @typedef {import("./lib/checks.mjs").Check} Check */

const PACKAGE = "Package the extension";

await runEntryPoint(async () => {
  const start = performance.now();
  const { layers, rest } = testOptions(process.argv.slice(2));
  const has = (/** @type {import("./lib/options.mjs").Layer} */ layer) => layers.includes(layer);

  heading("Set-up");
  const project = await prepare({ editor: has("e2e"), browser: has("e2e") });
  say(`Set-up: ready in ${seconds(performance.now() - start)}`);

  const script = (/** @type {string} */ file, /** @type {string[]} */ ...args) => [
    project.node,
    join(nodeModules, file),
    ...args,
  ];
  /** @type {Check[]} */
  const checks = [];
  if (has("lint")) checks.push(...lintChecks(project));
  if (has("extension")) {
    // Under CI it would write colours into a file, too.
    const colour = process.stdout.isTTY ? [] : ["--no-color"];
    checks.push({ name: "Extension units (Vitest)", command: script("vitest/vitest.mjs", "run", ...colour, ...rest) });
  }
  if (has("e2e")) {
    checks.push({
      name: PACKAGE,
      command: [process.execPath, "scripts/package.mjs"],
      env: { TWINLENS_SKIP_SETUP: "1" },
    });
    checks.push({
      name: "Journeys in a real editor (Playwright)",
      needs: PACKAGE,
      command: script("@playwright/test/cli.js", "test", "--config", "tests/e2e", ...rest),
    });
  }
  if (has("lsp") || has("python")) {
    const folders = [...(has("python") ? ["tests/server"] : []), ...(has("lsp") ? ["tests/lsp"] : [])];
    checks.push({
      name: has("python") && has("lsp") ? "Python units and protocol (pytest)" : `${folders[0]} (pytest)`,
      command: [venvPython, "-m", "pytest", ...(rest.length > 0 ? rest : folders)],
      // Two threads each in several processes are slower than one on a small machine.
      env: { OMP_NUM_THREADS: "1" },
      saysItself: true,
    });
  }

  const last = checks.pop();
  const failed = await failures(checks);
  if (failed.length > 0) say(`\nFailed so far: ${failed.join(", ")}`);
  if (last) failed.push(...(await failures([last])));
  return failed.length > 0 ? 1 : 0;
});
