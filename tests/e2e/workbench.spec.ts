import { venvPython } from "../../scripts/lib/paths.mjs";
import { expect, test } from "./harness";

test("opening a Python file starts Twinlens, whose commands are in the palette", async ({ editor }) => {
  await editor.openFile("lumen/modeling_lumen.py");
  await editor.extensionIsActive();
  await editor.runCommand("Twinlens: Show Logs");
  await expect(editor.page.locator(".part.panel .view-lines")).toContainText(
    `Starting the server with ${venvPython} (setting)`,
  );
  await editor.screenshot("workbench");
});
