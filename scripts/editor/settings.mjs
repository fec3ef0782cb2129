import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { venvPython } from "../lib/paths.mjs";

/** A quiet VS Code, whose Twinlens uses the project's own interpreter, where torch and transformers are. */
export const baseSettings = {
  "chat.disableAIFeatures": true,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  // In a browser VS Code saves by itself, unlike at a desktop.
  "files.autoSave": "off",
  "git.openRepositoryInParentFolders": "never",
  "telemetry.telemetryLevel": "off",
  "twinlens.interpreter": venvPython,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
};

// The browser's window counts the server as a remote machine: settings of machine scope are read from the second alone.
const FILES = [join("User", "settings.json"), join("Machine", "settings.json")];

/**
 * @param {string} userData VS Code's user data folder
 * @param {Readonly<Record<string, unknown>>} settings
 */
export async function writeSettings(userData, settings) {
  for (const file of FILES) {
    await mkdir(dirname(join(userData, file)), { recursive: true });
    await writeFile(join(userData, file), `${JSON.stringify(settings, null, 2)}\n`);
  }
}

/** @param {string} userData */
export const hasSettings = (userData) => FILES.every((file) => existsSync(join(userData, file)));
