/** What VS Code, its extension host and every output channel wrote. */

import { existsSync } from "node:fs";
import { cp, readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { TestInfo } from "@playwright/test";

async function logFiles(userData: string): Promise<string[]> {
  const logs = join(userData, "logs");
  if (!existsSync(logs)) return [];
  const entries = await readdir(logs, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** The text of all log files whose name the pattern accepts, in no set order. */
export async function readLogs(userData: string, pattern: RegExp): Promise<string> {
  const files = (await logFiles(userData)).filter((file) => pattern.test(basename(file)));
  return (await Promise.all(files.map((file) => readFile(file, "utf8")))).join("\n");
}

/** Keeps the logs beside the failed test's other results, and prints the end of Twinlens' own. */
export async function keepLogs(userData: string, testInfo: TestInfo): Promise<void> {
  const kept = testInfo.outputPath("vscode-logs");
  await cp(join(userData, "logs"), kept, { recursive: true });
  const own = (await readLogs(userData, /twinlens/i)).trimEnd().split("\n").slice(-60).join("\n");
  console.log(`\nThe end of Twinlens' logs (all logs: ${kept}):\n${own}\n`);
}
