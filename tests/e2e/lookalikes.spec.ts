import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const MODELS = execFileSync(venvPython, [
  "-c",
  "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('transformers').origin).parent / 'models', end='')",
]).toString();

/** A port that is Llama under another name, but for what its norm returns. */
const NOVA = readFileSync(join(MODELS, "llama", "modeling_llama.py"), "utf8")
  .replaceAll("Llama", "Nova")
  .replaceAll("llama", "nova")
  .replace("return self.weight * hidden_states.to(input_dtype)", "return (1 + self.weight) * hidden_states");

test.setTimeout(480_000);
test.use({ files: { "nova/modeling_nova.py": NOVA } });

/** Opens the port and waits for its flags: the index is built by the first test that needs it. */
async function openFlagged(editor: Editor): Promise<void> {
  await editor.openFile("nova/modeling_nova.py");
  await expect(async () => {
    const hover = await editor.hoverWord("NovaMLP", "class NovaMLP");
    await expect(hover).toContainText("Nearly LlamaMLP (llama): embedding 1.00, Jaccard 1.00", { timeout: 1_000 });
  }).toPass({ timeout: 300_000 });
}

/** Picks a code action of the class at the cursor. */
async function pickAction(editor: Editor, title: string): Promise<void> {
  await editor.page.keyboard.press("Control+.");
  const widget = editor.page.locator(".action-widget:not(.action-list-submenu-panel)");
  await expect(widget).toContainText(title);
  await editor.screenshot("lookalikes-actions");
  await widget.getByText(title, { exact: true }).click();
}

test("a near copy is flagged, compared, and written as a modular subclass that undo takes back", async ({ editor }) => {
  await openFlagged(editor);
  await editor.screenshot("lookalikes-flag-light");
  await editor.setTheme("dark");
  await editor.hoverWord("NovaRMSNorm", "class NovaRMSNorm");
  await editor.screenshot("lookalikes-flag-dark");

  await editor.clickWord("NovaRMSNorm", "class NovaRMSNorm");
  await pickAction(editor, "Compare with LlamaRMSNorm");
  const diff = editor.page.locator(".monaco-diff-editor");
  await expect(diff.locator(".editor.modified .view-lines")).toContainText("(1 + self.weight)");
  await expect(diff.locator(".editor.original .view-lines")).toContainText("class LlamaRMSNorm");
  await editor.screenshot("lookalikes-compare-names");
  await editor.page.getByRole("button", { name: "Hide Model Names" }).click();
  await expect(diff.locator(".editor.original .view-lines")).toContainText("class ModelRMSNorm");
  await expect(diff.locator(".editor.modified .view-lines")).toContainText("class ModelRMSNorm");
  await editor.screenshot("lookalikes-compare-hidden");
  await editor.page.getByRole("button", { name: "Show Model Names" }).click();
  await expect(diff.locator(".editor.original .view-lines")).toContainText("class LlamaRMSNorm");

  await editor.openFile("nova/modeling_nova.py");
  await editor.clickWord("NovaRMSNorm", "class NovaRMSNorm");
  await pickAction(editor, "Inherit from LlamaRMSNorm in modular_nova.py");
  await expect(editor.page.locator(".tab.active")).toContainText("modular_nova.py");
  const text = editor.page.locator(".editor-group-container.active .view-lines");
  await expect(text).toContainText("class NovaRMSNorm(LlamaRMSNorm):");
  await expect(text).toContainText("from ..llama.modeling_llama import LlamaRMSNorm");
  await editor.screenshot("lookalikes-modular");
  await editor.page.keyboard.press("Control+z");
  await expect(editor.page.locator(".view-lines").filter({ hasText: "class NovaRMSNorm(LlamaRMSNorm)" })).toHaveCount(
    0,
  );
});

test("the view Similar Classes lists the active file's classes with what resembles them", async ({ editor }) => {
  await openFlagged(editor);
  await editor.page.getByRole("tab", { name: "Twinlens" }).click();
  const rows = editor.page.locator(".pane-body .monaco-list-row");
  await expect(rows.filter({ hasText: "NovaMLP" }).first()).toContainText("LlamaMLP (llama)", { timeout: 60_000 });
  await expect(editor.page.locator(".pane").filter({ hasText: "Similar Classes" })).toContainText(
    /Most like llama \(\d+ of \d+/,
  );
  await rows.filter({ hasText: "NovaMLP" }).first().click();
  await expect(rows.filter({ hasText: /llama · embedding 1\.00/ }).first()).toBeVisible();
  await editor.screenshot("lookalikes-view-light");
  await editor.setTheme("dark");
  await editor.screenshot("lookalikes-view-dark");
  await rows
    .filter({ hasText: /llama · embedding 1\.00/ })
    .first()
    .click();
  await expect(editor.page.locator(".editor-group-container.active .tab.active")).toContainText("modeling_llama.py");
});

test("a comment silences a flag", async ({ editor }) => {
  await openFlagged(editor);
  await editor.clickWord("NovaMLP", "class NovaMLP");
  await pickAction(editor, "Don't flag this class");
  await expect(await editor.line("class NovaMLP(nn.Module):  # twinlens: ignore[similar-class]")).toBeVisible();
  await expect(async () => {
    const hover = await editor.hoverWord("NovaMLP", "class NovaMLP");
    await expect(hover).not.toContainText("Nearly LlamaMLP", { timeout: 1_000 });
  }).toPass();
});
