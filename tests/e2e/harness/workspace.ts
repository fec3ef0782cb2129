/** A folder that a test may change: a copy of another, with the test's own files on top. */

import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

export async function withWorkspace(
  copyOf: string,
  files: Readonly<Record<string, string>>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const scratch = await realpath(await mkdtemp(join(tmpdir(), "twinlens-workspace-")));
  const folder = join(scratch, basename(copyOf));
  try {
    await cp(copyOf, folder, { recursive: true, filter: (source) => basename(source) !== "__pycache__" });
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    await use(folder);
  } finally {
    await rm(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}
