import { chmod, stat } from "node:fs/promises";
import { join } from "node:path";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { expect, test } from "./harness";

// A Python inside the workspace is code of the workspace: whoever runs it leaves a trace.
const CANARY = `#!/bin/sh\ntouch "$(dirname "$0")/ran"\nexec ${venvPython} "$@"\n`;

test.use({
  trustsEveryFolder: false,
  extraExtensions: [join(import.meta.dirname, "extensions", "python-envs")],
  environment: { JOURNEY: "trust" },
  settings: { "twinlens.interpreter": "" },
  files: { "conda/bin/python": CANARY },
});

test("in Restricted Mode no Python of the workspace is run; once trusted, the one chosen in Python Environments is", async ({
  editor,
}) => {
  const python = join(editor.folder, "conda", "bin", "python");
  const ran = () => stat(join(editor.folder, "conda", "bin", "ran")).then(Boolean, () => false);
  await chmod(python, 0o755);
  await expect(editor.statusBarItem("Restricted Mode")).toBeVisible();
  await editor.openFile("lumen/modeling_lumen.py");
  await editor.runCommand("Twinlens: Show Logs");
  const logs = editor.page.locator(".part.panel .view-lines");
  await expect(logs).toContainText("(PATH)");
  await editor.screenshot("trust-restricted");
  await expect(editor.codeLens("Trace forward")).toHaveCount(0);
  expect(await ran()).toBe(false);

  await editor.runCommand("Workspaces: Manage Workspace Trust");
  await editor.page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true }).click();
  await expect.poll(() => editor.logs(), { timeout: 60_000 }).toContain("(Python Environments)");
  expect(await ran()).toBe(true);
  await editor.openFile("lumen/modeling_lumen.py");
  await expect(editor.codeLens("Trace forward").filter({ visible: true }).first()).toBeVisible({ timeout: 60_000 });
});
