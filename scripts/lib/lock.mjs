import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { say } from "./say.mjs";

const holder = fileURLToPath(new URL("hold_lock.py", import.meta.url));

/**
 * Does the work while no other process holds the same lock. A child holds it with the system's own file lock, which ends
 * with the process that has it, so that no stale lock is ever left behind.
 * @template T
 * @param {string} python
 * @param {string} file
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(python, file, work) {
  await mkdir(dirname(file), { recursive: true });
  const child = spawn(python, ["-I", holder, file], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  await held(child);
  try {
    return await work();
  } finally {
    child.stdin.end();
    await ended;
  }
}

/** @param {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} child */
function held(child) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => reject(new Error(`The process that holds the lock ended with code ${code}.`)));
      createInterface({ input: child.stdout }).on("line", (word) => {
        if (word === "waiting") say("Another run is preparing the same things: waiting for it…");
        if (word === "held") resolve();
      });
    })
  );
}
