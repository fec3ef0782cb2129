import { join } from "node:path";
import { ensureBrowser } from "../steps/browser.mjs";
import { ensureCodeServer } from "../steps/codeServer.mjs";
import { ensureNodeModules } from "../steps/nodeModules.mjs";
import { ensureVenv } from "../steps/venv.mjs";
import { UserError } from "./errors.mjs";
import { withLock } from "./lock.mjs";
import { projectNode } from "./node.mjs";
import { checkout, sharedCache } from "./paths.mjs";
import { findPython } from "./python.mjs";
import { fingerprint } from "./stamp.mjs";

/**
 * What a command stands on, besides the virtual environment and node_modules.
 * @typedef {object} Needs
 * @property {boolean} [editor] a real VS Code
 * @property {boolean} [browser] Chromium to drive it
 */

/**
 * Makes sure that everything a command needs is installed; quick where it is.
 * @param {Needs} [needs]
 * @returns {Promise<import("./node.mjs").ProjectNode>}
 */
export async function prepare({ editor = false, browser = false } = {}) {
  if (process.platform === "win32") {
    throw new UserError("Twinlens is developed on Linux and macOS. On Windows, work inside WSL.");
  }
  // For whoever looks after .venv and node_modules by other means, such as an image made once for many machines.
  if (!process.env.TWINLENS_SKIP_SETUP) {
    const python = await findPython();
    await withLock(python.path, join(sharedCache(), `checkout-${fingerprint([checkout])}.lock`), async () => {
      await ensureVenv(python);
      await ensureNodeModules(await projectNode());
    });
  }
  const project = await projectNode();
  if (editor) await ensureCodeServer(project);
  if (browser) await ensureBrowser();
  return project;
}
