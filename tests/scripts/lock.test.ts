import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withLock } from "../../scripts/lib/lock.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "twinlens-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("lets one work at a time, and says that the other waits", async () => {
  const said = vi.spyOn(console, "log").mockImplementation(() => undefined);
  const file = join(folder, "lock");
  const told: string[] = [];
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const first = withLock("python3", file, async () => {
    begin();
    await mayEnd;
    told.push("first");
  });
  await began;
  const second = withLock("python3", file, async () => void told.push("second"));
  await vi.waitFor(() =>
    expect(said).toHaveBeenCalledWith("Another run is preparing the same things: waiting for it…"),
  );
  end();
  await Promise.all([first, second]);
  expect(told).toEqual(["first", "second"]);
  said.mockRestore();
});

it("is free again after work that failed", async () => {
  const file = join(folder, "lock");
  await expect(withLock("python3", file, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await withLock("python3", file, async () => "done")).toBe("done");
});
