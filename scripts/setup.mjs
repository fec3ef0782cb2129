// Installs everything that the other commands need: .venv, node_modules, VS Code and Chromium.
import { runEntryPoint } from "./lib/errors.mjs";
import { prepare } from "./lib/prepare.mjs";
import { say, seconds } from "./lib/say.mjs";

await runEntryPoint(async () => {
  const start = performance.now();
  await prepare({ editor: true, browser: true });
  say(`Everything is ready (${seconds(performance.now() - start)}).`);
});
