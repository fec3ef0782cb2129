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
  "git.openRepositoryInParentFolders": "never",
  "telemetry.telemetryLevel": "off",
  "twinlens.interpreter": venvPython,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

/** @param {string} userData */
const settingsFile = (userData) => join(userData, "User", "settings.json");

/**
 * @param {string} userData VS Code's user data folder
 * @param {Readonly<Record<string, unknown>>} settings
 */
export async function writeSettings(userData, settings) {
  await mkdir(dirname(settingsFile(userData)), { recursive: true });
  await writeFile(settingsFile(userData), `${JSON.stringify(settings, null, 2)}\n`);
}

/** @param {string} userData */
export const hasSettings = (userData) => existsSync(settingsFile(userData));
