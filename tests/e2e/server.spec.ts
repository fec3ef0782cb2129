import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { venvPython } from "../../scripts/lib/paths.mjs";
import { expect, test } from "./harness";

const SAMPLE = "lumen/modeling_lumen.py";

test("the language status tells of the server, the interpreter and the index", async ({ editor }) => {
  await editor.openFile(SAMPLE);
  await editor.setTheme("dark");
  await editor.page.locator("#status\\.languageStatus").hover();
  const status = editor.page.locator(".monaco-hover:visible, .hover-language-status").filter({ hasText: "Twinlens" });
  await expect(status.first()).toContainText(/Python 3\.\d+\.\d+, torch/);
  await editor.screenshot("server-status-dark");
  await editor.runCommand("Twinlens: Copy Debug Information");
  await expect(editor.notification("copied")).toBeVisible();
  const copied = await editor.page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toContain(`- Interpreter: ${venvPython} (setting): Python 3`);
  expect(copied).toContain("- Server: running");
});

test("a server that is killed comes back", async ({ editor, server }) => {
  test.skip(process.platform !== "linux", "looks for the process in /proc");
  await editor.openFile(SAMPLE);
  await expect.poll(() => serverProcesses(server.userData)).toHaveLength(1);
  const before = await serverProcesses(server.userData);
  for (const id of before) process.kill(id, "SIGKILL");
  await expect.poll(() => editor.logs()).toContain("The server ended; starting it again");
  await expect.poll(() => serverProcesses(server.userData)).toHaveLength(1);
  expect(await serverProcesses(server.userData)).not.toEqual(before);
});

/** The language servers of this test's VS Code, whose extensions lie beside its user data. */
async function serverProcesses(userData: string): Promise<number[]> {
  const extensions = join(userData, "..", "extensions");
  const found: number[] = [];
  for (const id of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const [command, environment] = await Promise.all(
      ["cmdline", "environ"].map((file) => readFile(join("/proc", id, file), "utf8").catch(() => "")),
    );
    if (command?.includes("twinlens.lsp") && environment?.includes(extensions)) found.push(Number(id));
  }
  return found;
}
