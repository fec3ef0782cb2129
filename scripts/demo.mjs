// Builds the extension, installs it into a real VS Code, and serves that on 127.0.0.1 until Ctrl-C.
import { join } from "node:path";
import { installExtension, startEditor } from "./editor/codeServer.mjs";
import { openInBrowser } from "./editor/desktop.mjs";
import { baseSettings, hasSettings, writeSettings } from "./editor/settings.mjs";
import { runEntryPoint } from "./lib/errors.mjs";
import { freePort } from "./lib/freePort.mjs";
import { demoOptions } from "./lib/options.mjs";
import { checkout } from "./lib/paths.mjs";
import { prepare } from "./lib/prepare.mjs";
import { say } from "./lib/say.mjs";
import { buildVsix } from "./vsix/build.mjs";

// npm changes the folder to the package's; INIT_CWD is where the person typed.
const typedIn = process.env.INIT_CWD ?? process.cwd();
// Kept from one demo to the next, with the index that Twinlens built and the person's settings.
const kept = join(checkout, ".twinlens-cache", "demo");
const home = { userData: join(kept, "user-data"), extensions: join(kept, "extensions") };

await runEntryPoint(async () => {
  const { folder, port } = demoOptions(process.argv.slice(2), typedIn);
  const project = await prepare({ editor: true });
  say("Building the extension…");
  const extension = await buildVsix(project);
  say("Installing it into VS Code…");
  if (!hasSettings(home.userData)) await writeSettings(home.userData, baseSettings);
  await installExtension(project, home, extension);
  const stop = new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, resolve);
  });
  const editor = await startEditor(project, home, { port: port ?? (await freePort()) });
  say(`\nVS Code with Twinlens, opened on ${folder}:\n\n  ${editor.urlOf(folder)}\n\nCtrl-C ends it.`);
  openInBrowser(editor.urlOf(folder));
  const code = await Promise.race([editor.ended, stop.then(() => 0)]);
  await editor.stop();
  return code;
});
