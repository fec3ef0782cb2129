import { join } from "node:path";
import { defineConfig } from "@playwright/test";
import { findChromium } from "../../scripts/steps/browser.mjs";

const chromium = findChromium();
// VS Code's page wants no network but our server; without these Chromium asks its maker's hosts all the time.
const offline = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export default defineConfig({
  testDir: ".",
  testMatch: "**/*.spec.ts",
  outputDir: "../../test-results/e2e",
  // One VS Code at a time: each brings an extension host, a browser and a Python server.
  workers: 1,
  fullyParallel: false,
  forbidOnly: Boolean(process.env.CI),
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  use: {
    launchOptions: {
      ...(chromium ? { executablePath: chromium } : {}),
      env: { ...process.env, FONTCONFIG_FILE: join(import.meta.dirname, "fonts.conf") },
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", ...offline],
    },
    viewport: { width: 1440, height: 900 },
    permissions: ["clipboard-read", "clipboard-write"],
    screenshot: "only-on-failure",
  },
});
