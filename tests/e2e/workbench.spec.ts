import { venvPython } from "../../scripts/lib/paths.mjs";
import { expect, test } from "./harness";

test("opening a Python file starts Twinlens; its walkthrough and its commands are in the palette", async ({
  editor,
}) => {
  await editor.openFile("lumen/modeling_lumen.py");
  await editor.extensionIsActive();
  await editor.runCommand("Welcome: Open Walkthrough...");
  await editor.pick("Port a model with Twinlens");
  const steps = editor.page.locator(".getting-started-step");
  await expect(steps).toHaveCount(4);
  await steps.filter({ hasText: "See who has written a class already" }).click();
  await expect(editor.page.getByRole("button", { name: "Show Similar Classes" })).toBeVisible();
  await expect(editor.webview.locator("body")).toContainText("Rest the pointer on a class");
  await editor.screenshot("walkthrough");

  await editor.runCommand("Twinlens: Show Logs");
  await expect(editor.page.locator(".part.panel .view-lines")).toContainText(
    `Starting the server with ${venvPython} (setting)`,
  );
  await editor.screenshot("workbench");
});
