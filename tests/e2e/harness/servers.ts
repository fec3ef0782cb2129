/** A VS Code server for one worker: its own user data and extensions, ours installed from the VSIX that is shipped. */

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { installExtension, startEditor } from "../../../scripts/editor/codeServer.mjs";
import { freePort } from "../../../scripts/lib/freePort.mjs";
import { type ProjectNode, projectNode } from "../../../scripts/lib/node.mjs";
import { nodeModules } from "../../../scripts/lib/paths.mjs";
import { must } from "../../../scripts/lib/run.mjs";
import { vsixPath } from "../../../scripts/vsix/build.mjs";

export interface ServerOptions {
  /** Whether every folder is trusted. Where false, VS Code asks, and Restricted Mode can be tried. */
  readonly trustsEveryFolder: boolean;
  /** Folders of further extensions, such as one that stands in for the Python extension. */
  readonly extraExtensions: readonly string[];
  /** Environment variables that VS Code and all its children see. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface EditorServer {
  readonly urlOf: (folder: string) => string;
  /** VS Code's user data folder: `User/settings.json`, `User/globalStorage`, `logs`. */
  readonly userData: string;
}

/** Starts one, lends it to `use`, and leaves nothing of it behind. */
export async function withServer(options: ServerOptions, use: (server: EditorServer) => Promise<void>): Promise<void> {
  const project = await projectNode();
  const scratch = await realpath(await mkdtemp(join(tmpdir(), "twinlens-e2e-")));
  const home = { userData: join(scratch, "user-data"), extensions: join(scratch, "extensions") };
  try {
    for (const folder of options.extraExtensions)
      await installExtension(project, home, await packed(project, folder, scratch));
    await installExtension(project, home, await vsixPath());
    const { trustsEveryFolder, environment } = options;
    const server = await startEditor(project, home, { port: await freePort(), trustsEveryFolder, env: environment });
    try {
      await use({ urlOf: server.urlOf, userData: home.userData });
    } finally {
      await server.stop();
    }
  } finally {
    await rm(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function packed({ node }: ProjectNode, folder: string, scratch: string): Promise<string> {
  const file = join(scratch, `${basename(folder)}.vsix`);
  const vsce = join(nodeModules, "@vscode", "vsce", "vsce");
  const options = ["--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", file];
  await must([node, vsce, "package", ...options], `vsce could not package ${folder}.`, { cwd: folder });
  return file;
}
