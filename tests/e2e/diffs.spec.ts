import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const PORT = "port/modeling_port.py";
const TEXT = `import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))
from lumen.configuration_lumen import LumenConfig
from lumen.modeling_lumen import LumenAttention, LumenForCausalLM


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class PortAttention(LumenAttention):
    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        batch, length, _ = hidden_states.shape
        split = lambda x: x.view(batch, length, -1, self.head_dim).transpose(1, 2)
        query, key, value = split(self.q_proj(hidden_states)), split(self.k_proj(hidden_states)), split(self.v_proj(hidden_states))
        half = self.head_dim // 2
        cos, sin = (x[..., :half].repeat_interleave(2, -1).unsqueeze(1) for x in position_embeddings)
        query, key = (x * cos + rotate_every_two(x) * sin for x in (query, key))
        key, value = (x.repeat_interleave(self.num_key_value_groups, dim=1) for x in (key, value))
        weights = (query @ key.transpose(2, 3) / self.head_dim**0.5 + attention_mask).softmax(dim=-1)
        return self.o_proj((weights @ value).transpose(1, 2).reshape(batch, length, -1)), weights


class PortForCausalLM(nn.Module):
    def __init__(self, original):
        super().__init__()
        self.decoder = original.model
        self.output = original.lm_head
        for layer in self.decoder.layers:
            layer.self_attn.__class__ = PortAttention

    def forward(self, input_ids):
        return self.output(self.decoder(input_ids))


def reference():
    torch.manual_seed(0)
    return LumenForCausalLM(LumenConfig()).eval(), {"input_ids": torch.arange(24)[None]}


def port():
    model, inputs = reference()
    return PortForCausalLM(model).eval(), inputs
`;

test.use({ files: { [PORT]: TEXT } });
test.setTimeout(240_000);

const run = promisify(execFile);

async function trace(editor: Editor, name: "reference" | "port"): Promise<void> {
  const command = "from twinlens.cli import main; main()";
  const where = join(".twinlens", "traces", name);
  await run(venvPython, ["-c", command, "trace", `${PORT}::${name}`, "--output-dir", where], { cwd: editor.folder });
}

async function compare(editor: Editor): Promise<void> {
  // The command is there once the server runs, and so are the lenses.
  await expect(editor.codeLens("Trace forward").first()).toBeVisible({ timeout: 60_000 });
  await editor.runCommand("Twinlens: Compare Traces");
  await editor.pick("reference");
  await editor.pick("port");
  await expect(editor.webview.getByRole("heading", { level: 1 })).toContainText("The traces differ", {
    timeout: 90_000,
  });
}

test("a wrong rotation is opened at its origin with its cause, and marked in the source", async ({ editor }) => {
  await trace(editor, "reference");
  await trace(editor, "port");
  await editor.openFile(PORT);
  await compare(editor);
  const page = editor.webview;
  await expect(page.getByRole("heading", { level: 1 })).toContainText("rotates the two halves of a head");
  const chosen = page.getByRole("row", { selected: true });
  await expect(chosen).toContainText("children agree, parent differs");
  await expect(page.locator(".cause")).toContainText("rope-layout");
  for (const theme of ["dark", "light", "high contrast"] as const) {
    await editor.setTheme(theme);
    await editor.screenshot(`diff-${theme.replace(" ", "-")}`);
  }
  await expectAccessible(editor);

  await page.getByRole("button", { name: "Open JSON diff" }).click();
  await expect(editor.tab("Reference ↔ Port")).toBeVisible();
  await expect(editor.page.locator(".monaco-diff-editor .editor.modified .view-lines")).toContainText('"module"');
  await editor.screenshot("diff-json");

  await editor.tab("LumenForCausalLM ↔ PortForCausalLM").click();
  await page.getByRole("button", { name: "Replay with reference inputs" }).click();
  await expect(page.getByRole("button", { name: "Show the recorded run" })).toBeVisible({ timeout: 90_000 });
  await expect(page.getByRole("row").filter({ hasText: "layers.1" })).toContainText("agrees");
  await editor.screenshot("diff-replay");

  await editor.openFile(PORT);
  await expect((await editor.problems()).filter({ hasText: "rope-layout" })).toBeVisible({ timeout: 60_000 });
});

test("two modules paired by hand stay paired when the window is reloaded", async ({ editor }) => {
  await trace(editor, "reference");
  await trace(editor, "port");
  await editor.openFile(PORT);
  await compare(editor);
  const page = editor.webview;
  const lines = page.getByRole("row").filter({ hasText: /norm/ });
  await page.getByRole("searchbox").fill("norm");
  const last = lines.filter({ hasNotText: "layernorm" });
  await last.click();
  await page.getByRole("button", { name: "Take apart" }).click();
  await expect(last).toHaveCount(2, { timeout: 30_000 });

  await last.first().click();
  await page.getByRole("button", { name: "Pair with…" }).click();
  await last.nth(1).click();
  await page.getByRole("button", { name: /^Pair with \w+\./ }).click();
  await expect(last).toHaveCount(1, { timeout: 30_000 });
  expect(await readFile(join(editor.folder, ".twinlens", "align.toml"), "utf8")).toContain('port = "decoder.norm"');

  await expect.poll(() => storedByTheBrowser(editor), { timeout: 60_000 }).toContain("twinlens.diff");
  await editor.page.reload();
  await editor.extensionIsActive();
  await expect(page.getByRole("searchbox")).toHaveValue("norm", { timeout: 90_000 });
  await expect(last).toHaveCount(1);
  await expect(last.getByTitle(/paired by map/)).toBeVisible();

  await rm(join(editor.folder, ".twinlens", "traces"), { recursive: true });
  await editor.page.reload();
  await editor.extensionIsActive();
  await expect(page.getByRole("alert")).toContainText("does not exist", { timeout: 90_000 });
  await editor.screenshot("diff-gone");
  await page.getByRole("button", { name: "Choose traces…" }).click();
  await expect(editor.page.locator(".quick-input-widget")).toContainText("The reference");
});

test("the keyboard alone finds the origin, opens and closes rows, and filters", async ({ editor }) => {
  await trace(editor, "reference");
  await trace(editor, "port");
  await editor.openFile(PORT);
  await compare(editor);
  const page = editor.webview;
  const grid = page.getByRole("treegrid");
  const chosen = page.getByRole("row", { selected: true });
  await grid.press("Home");
  await expect(chosen).toContainText("LumenForCausalLM");
  await grid.press("n");
  await expect(chosen).toContainText("self_attn");
  await expect(grid).toBeFocused();
  await grid.press("ArrowLeft");
  await expect(chosen).toHaveAttribute("aria-expanded", /false|true/);
  await grid.press("Shift+Tab");
  await expect(grid).not.toBeFocused();
});

/** All that VS Code keeps in the browser by now. It stores which editors are open now and then, and tells nobody. */
async function storedByTheBrowser(editor: Editor): Promise<string> {
  return editor.page.evaluate(async () => {
    const answer = <T>(request: IDBRequest<T>) =>
      new Promise<T>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const texts: string[] = [];
    for (const { name } of await indexedDB.databases()) {
      if (name === undefined || !name.startsWith("vscode-web-state-db")) continue;
      const database = await answer(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        const values = await answer(database.transaction(store).objectStore(store).getAll());
        texts.push(...values.filter((value) => typeof value === "string" && value.includes("mainThreadWebview-")));
      }
      database.close();
    }
    return texts.join("\n");
  });
}

/** What axe-core, run inside the page, says of it. */
async function expectAccessible(editor: Editor): Promise<void> {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const frame = await (await editor.webview.locator("html").elementHandle())?.ownerFrame();
  if (!frame) throw new Error("the page has no frame");
  await frame.evaluate(axe);
  const violations = await frame.evaluate(async () => {
    const { axe: tool } = window as unknown as { axe: { run(): Promise<{ violations: { id: string }[] }> } };
    return (await tool.run()).violations.map(({ id }) => id);
  });
  expect(violations).toEqual([]);
}
