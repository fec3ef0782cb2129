import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { checkout } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const LIBRARY = join(checkout, "tests", "server", "checks", "library", "transformers", "models");
const PORT = "port/declared_port.py";
const TEXT = `from torch import nn
from transformers import PreTrainedModel
from twinlens import capture_outputs, register_patch_mapping


class PortAttention(nn.Module):
    def forward(self, states, **kwargs):
        return states, None


class PortLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = PortAttention()


class PortModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": PortLayer, "attentions": PortAttention}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([PortLayer() for _ in range(2)])

    @capture_outputs
    def forward(self, states, **kwargs):
        return states


class Fused(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()


register_patch_mapping({".*Attention$": Fused})
`;

test.use({ settings: { "twinlens.library": [LIBRARY] }, files: { [PORT]: TEXT } });
test.setTimeout(180_000);

/** The squiggle and its problem for what is wrong now; waits for it. */
async function onlyProblem(editor: Editor, text: string) {
  const problems = await editor.problems();
  const row = problems.filter({ hasText: text });
  await expect(row).toBeVisible({ timeout: 60_000 });
  return row;
}

test("a misspelt recorder is marked as it is typed, explained, and mended by its fix", async ({ editor }) => {
  await editor.openFile(PORT);
  await editor.replaceText(TEXT.replace('"hidden_states": PortLayer', '"hidden_states": PortLayr'));
  const problem = await onlyProblem(editor, "PortLayr is neither defined nor imported in this file");
  await expect(problem).toContainText("unknown-class");
  await editor.setTheme("dark");
  await editor.screenshot("checks-problem-dark");
  await editor.setTheme("light");

  await editor.clickWord("PortLayr");
  await editor.screenshot("checks-problem-light");
  await editor.page.keyboard.press("ControlOrMeta+.");
  const menu = editor.page.locator(".action-widget:visible");
  await expect(menu).toContainText("Explain unknown-class");
  await expect(menu).toContainText("Ignore unknown-class here");
  await editor.screenshot("checks-fixes");
  await menu.getByText("Explain unknown-class").click();
  await expect(editor.tab("Preview unknown-class.md")).toBeVisible({ timeout: 30_000 });
  await expect(editor.webview.getByRole("heading", { name: "Why it matters" })).toBeVisible({ timeout: 30_000 });
  await editor.screenshot("checks-page");

  await editor.page.locator(".editor-group-container").first().locator(".tab").first().click();
  // The page takes the focus once more when all of it has loaded, and the keys with it: then they are pressed again.
  await expect(async () => {
    await editor.clickWord("PortLayr");
    await editor.page.keyboard.press("ControlOrMeta+.");
    await expect(menu).toContainText("Change it to PortLayer", { timeout: 3_000 });
  }).toPass({ timeout: 30_000 });
  await menu.getByText("Change it to PortLayer").click();
  await expect(editor.page.locator(".markers-panel-container")).toContainText("No problems");
  await expect(await editor.line('"hidden_states": PortLayer,')).toBeVisible();
});

test("hovering a recorder shows the modules that it hooks", async ({ editor }) => {
  await editor.openFile(PORT);
  await expect(async () => {
    const hover = await editor.hoverWord("PortAttention", '"attentions": PortAttention');
    await expect(hover).toContainText("Recorded as attentions", { timeout: 1_000 });
    await expect(hover).toContainText("layers.{i}.attn", { timeout: 1_000 });
  }).toPass({ timeout: 60_000 });
  await editor.screenshot("checks-hover");
});

test("a lens counts the classes that a key matches, lists them, and opens one", async ({ editor }) => {
  await editor.openFile(PORT);
  await editor.line("register_patch_mapping({");
  const lens = editor.codeLens(".*Attention$: 2 classes");
  await expect(lens).toBeVisible({ timeout: 60_000 });
  await editor.screenshot("checks-lens");
  await lens.click();
  await expect(editor.quickRow("MapleAttention")).toBeVisible();
  await expect(editor.quickRow("PortAttention")).toBeVisible();
  await editor.screenshot("checks-lens-list");
  await editor.pick("MapleAttention");
  await expect(editor.tab("modeling_maple.py")).toBeVisible();
  const library = await readFile(join(LIBRARY, "maple", "modeling_maple.py"), "utf8");
  const line = library.split("\n").indexOf("class MapleAttention(nn.Module):") + 1;
  await expect(editor.page.locator("#status\\.editor\\.selection")).toContainText(`Ln ${line}, Col 1`);
});
