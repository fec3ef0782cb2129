import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { UserError } from "../lib/errors.mjs";
import { systemKind } from "../lib/os.mjs";
import { ensureSystemPackages } from "./systemPackages.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MACOS = ["Chromium", "Google Chrome"].map((name) => `/Applications/${name}.app/Contents/MacOS/${name}`);

/** @param {NodeJS.ProcessEnv} environment */
export function findChromium(environment = process.env, exists = existsSync) {
  const onPath = (environment.PATH ?? "").split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return [...(environment.TWINLENS_CHROMIUM ? [environment.TWINLENS_CHROMIUM] : []), ...onPath, ...MACOS].find((file) =>
    exists(file),
  );
}

/** Chromium for the journeys, with fonts that make their screenshots look like a person's screen. */
export async function ensureBrowser() {
  if (systemKind() === "debian") {
    await ensureSystemPackages({
      purpose: "Testing in a real editor",
      debian: [...(findChromium() ? [] : ["chromium"]), "fonts-inter", "fonts-dejavu-core", "fonts-noto-color-emoji"],
      elsewhere: "",
    });
  }
  if (!findChromium()) {
    throw new UserError(
      "The journeys need Chromium or Chrome. Install one, or name its program in the environment variable TWINLENS_CHROMIUM.",
    );
  }
}
