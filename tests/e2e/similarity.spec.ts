import type { Locator } from "@playwright/test";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const SAMPLE = "lumen/modeling_lumen.py";
// The index over the whole installed transformers is built once a run, by the first test that needs it.
const FIRST_INDEX = 420_000;

test.setTimeout(480_000);

/** Hovers a class until the index with embeddings answers. */
async function hoverWithBothScores(editor: Editor, name: string): Promise<Locator> {
  await expect(async () => {
    const hover = await editor.hoverWord(name, `class ${name}`);
    await expect(hover.locator("th").filter({ hasText: "Embedding" })).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: FIRST_INDEX });
  return editor.hover.first();
}

test("hovering a class shows the library's classes that resemble it, and a link opens one at its line", async ({
  editor,
}) => {
  await editor.openFile(SAMPLE);
  await editor.setTheme("dark");
  const hover = await hoverWithBothScores(editor, "LumenMLP");
  await expect(hover.locator("th").first()).toHaveText(/^Similar to LumenMLP/);
  const links = hover.getByRole("link");
  await expect(links).toHaveCount(5);
  for (const link of await links.all()) await expect(link).toHaveText(/(MLP|FeedForward)$/);
  await editor.screenshot("similarity-hover-dark");
  await editor.setTheme("light");
  await editor.hoverWord("LumenMLP", "class LumenMLP");
  await editor.screenshot("similarity-hover-light");

  const link = editor.hover.first().getByRole("link").first();
  const name = await link.textContent();
  await link.click();
  await expect(editor.page.locator(".tabs-container .tab.active")).toHaveText(/^modeling_(?!lumen)/);
  await expect(editor.page.locator(".editor-group-container.active .view-lines")).toContainText(`class ${name}(`);
  await expect(editor.page.locator("#status\\.editor\\.selection")).not.toContainText("Ln 1,");
  await editor.screenshot("similarity-library-file");
});

test("the hover follows what is typed, saved or not", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await hoverWithBothScores(editor, "LumenMLP");
  await editor.replaceText(
    "from torch import nn\n\n\nclass ÉpiMLP(nn.Module):\n    def forward(self, x):\n        return x\n",
  );
  await expect(async () => {
    await expect(await editor.hoverWord("ÉpiMLP", "class ÉpiMLP")).toContainText("Similar to ÉpiMLP", {
      timeout: 1_000,
    });
  }).toPass();
});

test("Show Similar Classes lists matches for the class at the cursor and opens one beside", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await hoverWithBothScores(editor, "LumenAttention");
  await editor.clickWord("head_dim", "self.head_dim = config.hidden_size");
  await editor.runCommand("Twinlens: Show Similar Classes");
  await expect(editor.page.locator(".quick-input-title")).toHaveText("Similar to LumenAttention");
  await expect(editor.quickRows.first()).toContainText(/embedding \d\.\d\d · Jaccard \d\.\d\d/);
  await editor.screenshot("similarity-quick-pick-light");
  await editor.setTheme("dark");
  await editor.screenshot("similarity-quick-pick-dark");
  await editor.page.keyboard.press("Enter");
  await expect(editor.page.locator(".editor-group-container")).toHaveCount(2);
  await expect(editor.page.locator(".editor-group-container.active .tab.active")).toHaveText(/^modeling_(?!lumen)/);
});

test("Rebuild Index shows how far it is, and a cancelled one leaves the index as it was", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await hoverWithBothScores(editor, "LumenMLP");
  await editor.runCommand("Twinlens: Rebuild Index");
  const building = editor.notification("building the index");
  await expect(building).toContainText(/\d+ %/);
  await editor.hoverWord("LumenMLP", "class LumenMLP");
  await expect(editor.hover.first()).toContainText(/\(\d+ %\)/);
  await editor.screenshot("similarity-building");
  await building.hover();
  await building.getByRole("button", { name: "Cancel" }).click();
  await expect(building).toHaveCount(0);
  await expect(async () => {
    await expect(await editor.hoverWord("LumenMLP", "class LumenMLP")).not.toContainText("%", { timeout: 1_000 });
  }).toPass();
  await expect(editor.hover.first().locator("th").filter({ hasText: "Embedding" })).toBeVisible();
});

test.describe("an interpreter that does not exist", () => {
  test.use({ settings: { "twinlens.interpreter": "/gone/bin/python" } });

  test("is named where the person looks, another one is used, and the right one when it is named", async ({
    editor,
  }) => {
    await editor.openFile(SAMPLE);
    await expect(editor.notification("/gone/bin/python, which does not exist")).toBeVisible();
    await editor.screenshot("similarity-no-interpreter");
    const logs = editor.page.locator(".part.panel .view-lines");
    // The palette can lose a click while its list is drawn anew, as it is when a server starts beside it.
    await expect(async () => {
      await editor.runCommand("Twinlens: Show Logs");
      await expect(logs).toContainText("(PATH)", { timeout: 5_000 });
    }).toPass({ timeout: 40_000 });

    await editor.updateSettings({ "twinlens.interpreter": venvPython });
    await expect(logs).toContainText(`Starting the server with ${venvPython} (setting)`);
    await hoverWithBothScores(editor, "LumenMLP");
    const before = await starts(editor);
    await editor.runCommand("Twinlens: Restart Server");
    await expect.poll(() => starts(editor)).toBe(before + 1);
    await hoverWithBothScores(editor, "LumenMLP");
  });
});

async function starts(editor: Editor): Promise<number> {
  return (await editor.logs()).split("Starting the server with").length - 1;
}
