import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Locator } from "@playwright/test";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const SAMPLE = "lumen/modeling_lumen.py";
const TRACING = 60_000;
const TROUBLE = ".twinlens/recipes/trouble.py";
const TROUBLE_TEXT = `import time

import torch
import twinlens
from torch import nn


class SlowNet(nn.Module):
    def forward(self, x):
        print("the model prints")
        time.sleep(120)


class RaisingNet(nn.Module):
    def forward(self, x):
        raise ValueError("expected 3 channels, got 4")


@twinlens.recipe(target="SlowNet")
def slow():
    return nn.Sequential(nn.Linear(4, 4), SlowNet()), torch.ones(1, 4)


@twinlens.recipe(target="RaisingNet")
def raising():
    return nn.Sequential(nn.Linear(4, 4), RaisingNet()), torch.ones(1, 4)


@twinlens.recipe()
def unreadable():
    return torch.load("weights-that-are-not-there.bin")
`;

const UNKNOWN_TEXT = `from torch import nn


class UnknownNet(nn.Module):
    def __init__(self, size):
        super().__init__()

    def forward(self, hidden_states):
        return hidden_states
`;

test.use({ files: { [TROUBLE]: TROUBLE_TEXT, "nets/unknown.py": UNKNOWN_TEXT } });
test.setTimeout(180_000);

/** The lens *Trace forward* or *Trace with…* that stands right above a line of the active file. */
async function lens(editor: Editor, title: string, file: string, inLine: string): Promise<Locator> {
  const lenses = editor.codeLens(title).filter({ visible: true });
  await expect(lenses.first()).toBeVisible({ timeout: 60_000 });
  const text = await readFile(join(editor.folder, file), "utf8");
  const number = text.slice(0, text.indexOf(inLine)).split("\n").length;
  let nearest = 0;
  // VS Code moves the lines once more when the lenses of the part scrolled to have come.
  await expect(async () => {
    await editor.goTo(number);
    const top = (await (await editor.line(inLine)).boundingBox())?.y ?? 0;
    const bottoms = await lenses.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().bottom));
    const gaps = bottoms.map((bottom) => top + 4 - bottom).map((gap) => (gap >= 0 ? gap : Number.POSITIVE_INFINITY));
    nearest = gaps.indexOf(Math.min(...gaps));
    expect(gaps[nearest]).toBeLessThan(20);
  }).toPass({ timeout: 60_000 });
  return lenses.nth(nearest);
}

/** Clicks *Trace forward* above a class of the sample and waits until it is done. */
async function traceSample(editor: Editor, name: string): Promise<void> {
  await (await lens(editor, "Trace forward", SAMPLE, `class ${name}`)).click();
  await expect(editor.notification(`Tracing ${name}`)).toBeVisible();
  await expect(editor.notification(`Tracing ${name}`)).toHaveCount(0, { timeout: TRACING });
}

function traceRows(editor: Editor): Locator {
  return editor.page.locator(".pane").filter({ hasText: "Traces" }).locator(".monaco-list-row");
}

test("a lens traces the sample decoder, the trace is in the view, and its summary opens", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await editor.screenshot("traces-lenses");
  await (await lens(editor, "Trace forward", SAMPLE, "class LumenModel")).click();
  await expect(editor.notification(/Tracing LumenModel: /)).toBeVisible();
  await editor.screenshot("traces-progress");
  const row = traceRows(editor).filter({ hasText: "LumenModel" });
  await expect(row).toBeVisible({ timeout: TRACING });
  await expect(row).toContainText("float32");
  await expect(editor.notification("Tracing LumenModel")).toHaveCount(0);
  await editor.screenshot("traces-view");
  await row.click();
  await expect(editor.page.locator(".tabs-container .tab.active")).toContainText("LumenModel_debug_tree_SUMMARY.json");
  await expect(editor.page.locator(".editor-group-container.active .view-lines")).toContainText('"module_path"');
  await editor.screenshot("traces-summary");
});

test("a part is traced inside the model that contains it, statistics only", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await (await lens(editor, "Trace with…", SAMPLE, "class LumenMLP")).click();
  await expect(editor.quickRow("lumen")).toBeVisible();
  await editor.screenshot("traces-with-recipe");
  await editor.pick("lumen");
  await editor.pick("Statistics only");
  await editor.pick("float64");
  const row = traceRows(editor).filter({ hasText: "LumenModel" });
  await expect(row).toContainText("float64", { timeout: TRACING });

  await traceSample(editor, "LumenMLP");
  await expect(traceRows(editor).filter({ hasText: "LumenMLP" })).toBeVisible();
  await editor.screenshot("traces-of-a-part");
});

test("cancelling a slow forward ends its process, and what ran is kept", async ({ editor }) => {
  await editor.openFile(TROUBLE);
  await (await lens(editor, "Trace forward", TROUBLE, "class SlowNet")).click();
  const running = editor.notification("Tracing SlowNet");
  await expect(running).toContainText("Sequential.1 (2 calls so far)", { timeout: TRACING });
  await editor.screenshot("traces-slow");
  await running.getByRole("button", { name: "Cancel" }).click();
  await expect(running).toHaveCount(0, { timeout: 2_000 });
  await editor.runCommand("Twinlens: Focus on Traces View");
  await expect(traceRows(editor).filter({ hasText: "not finished" })).toBeVisible();
  await editor.screenshot("traces-cancelled");
  await editor.runCommand("Output: Show Output Channels...");
  await editor.pick("Twinlens Traces");
  await expect(editor.page.locator(".part.panel .view-lines")).toContainText("the model prints");
});

test("a forward that raises is marked in the view, and its error is told", async ({ editor }) => {
  await editor.openFile(TROUBLE);
  await (await lens(editor, "Trace forward", TROUBLE, "class RaisingNet")).click();
  const told = editor.notification("ValueError: expected 3 channels, got 4");
  await expect(told).toBeVisible({ timeout: TRACING });
  await expect(traceRows(editor).filter({ hasText: "RaisingNet" })).toBeVisible();
  await editor.screenshot("traces-raised");
  await told.getByRole("button", { name: "Show Output" }).click();
  await expect(editor.page.locator(".part.panel .view-lines")).toContainText("trouble.py");
});

test("a recipe that raises, a class without one and an interpreter without torch each get their sentence and a way on", async ({
  editor,
}) => {
  await editor.openFile(TROUBLE);
  await (await lens(editor, "Trace forward", TROUBLE, "def unreadable")).click();
  await expect(editor.notification("when running the recipe trouble.py::unreadable")).toBeVisible({ timeout: TRACING });
  await editor.openFile("nets/unknown.py");
  await (await lens(editor, "Trace forward", "nets/unknown.py", "class UnknownNet")).click();
  await expect(editor.page.locator(".tabs-container .tab.active")).toContainText("unknown_net.py", {
    timeout: TRACING,
  });
  await expect(editor.page.locator(".editor-group-container.active .view-lines")).toContainText(
    "from nets.unknown import UnknownNet",
  );
  await editor.screenshot("traces-template");

  // The server runs with it, since it brings its own libraries; a model cannot.
  const bare = join(editor.folder, "..", "bare");
  await promisify(execFile)(venvPython, ["-m", "venv", "--without-pip", bare]);
  const python = join(bare, "bin", "python");
  await editor.updateSettings({ "twinlens.interpreter": python });
  await expect.poll(() => editor.logs(), { timeout: 60_000 }).toContain(`Starting the server with ${python}`);
  await editor.openFile(SAMPLE);
  await (await lens(editor, "Trace forward", SAMPLE, "class LumenModel")).click();
  await expect(editor.notification("has no torch, which a trace needs")).toBeVisible({ timeout: TRACING });
  await editor.screenshot("traces-no-torch");
});

test("traces are renamed, compared with the one before, and deleted", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  for (const count of [1, 2]) {
    await traceSample(editor, "LumenModel");
    await expect(traceRows(editor)).toHaveCount(count);
  }
  await editor.chooseFromContextMenu(traceRows(editor).first(), "Rename…");
  await editor.quickInput.fill("after the fix");
  await editor.page.keyboard.press("Enter");
  await expect(traceRows(editor).filter({ hasText: "after the fix" })).toBeVisible();

  const renamed = traceRows(editor).filter({ hasText: "after the fix" });
  await editor.chooseFromContextMenu(renamed, "Compare With the Previous of This Class");
  await expect(editor.webview.getByRole("heading", { level: 1 })).toContainText("The traces agree", {
    timeout: TRACING,
  });
  await expect(editor.page.locator(".tabs-container .tab.active")).toContainText("↔ after the fix");
  await editor.screenshot("traces-compare");

  await editor.chooseFromContextMenu(renamed, "Delete");
  await editor.page.locator(".monaco-dialog-box").getByRole("button", { name: "Delete" }).click();
  await expect(traceRows(editor)).toHaveCount(1);
  const left = await readdir(join(editor.folder, ".twinlens", "traces"));
  expect(left.filter((name) => name !== ".gitignore")).toHaveLength(1);
});
