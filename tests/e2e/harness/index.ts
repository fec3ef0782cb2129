/** What a journey imports: Playwright's `test` with a real VS Code, and `expect`. */

import { test as base } from "@playwright/test";
import { baseSettings, writeSettings } from "../../../scripts/editor/settings.mjs";
import { samples } from "../../../scripts/lib/paths.mjs";
import { Editor, type Settings } from "./editor";
import { keepLogs } from "./logs";
import { type EditorServer, type ServerOptions, withServer } from "./servers";
import { withWorkspace } from "./workspace";

export { expect } from "@playwright/test";
export type { Editor, Theme } from "./editor";

interface PerTest {
  /** User settings, on top of those of `scripts/editor/settings.mjs`. */
  settings: Settings;
  /** The folder whose copy is opened. */
  workspace: string;
  /** Further files of the workspace: path to text. */
  files: Readonly<Record<string, string>>;
  /** VS Code, opened on the workspace. */
  editor: Editor;
}

interface PerWorker extends ServerOptions {
  server: EditorServer;
}

export const test = base.extend<PerTest, PerWorker>({
  trustsEveryFolder: [true, { option: true, scope: "worker" }],
  extraExtensions: [[], { option: true, scope: "worker" }],
  environment: [{}, { option: true, scope: "worker" }],
  settings: [{}, { option: true }],
  workspace: [samples, { option: true }],
  files: [{}, { option: true }],

  server: [
    async ({ trustsEveryFolder, extraExtensions, environment }, use) => {
      await withServer({ trustsEveryFolder, extraExtensions, environment }, use);
    },
    { scope: "worker", timeout: 120_000 },
  ],

  editor: async ({ server, page, settings, workspace, files }, use, testInfo) => {
    // `Editor.setTheme` changes what the operating system prefers: a settings file is noticed when its watcher gets round to it.
    const all = { ...baseSettings, "window.autoDetectColorScheme": true, ...settings };
    await writeSettings(server.userData, all);
    await withWorkspace(workspace, files, async (folder) => {
      const editor = new Editor(page, folder, server.userData, all);
      try {
        await editor.open(server.urlOf(folder));
        await use(editor);
      } finally {
        if (testInfo.status !== testInfo.expectedStatus) await keepLogs(server.userData, testInfo);
        // Leaving the page lets VS Code end this window's extension host instead of waiting for it to come back.
        await page.goto("about:blank");
      }
    });
  },
});
