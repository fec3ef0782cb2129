import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * A short hash of everything that decides what a step makes.
 * @param {readonly unknown[]} inputs JSON values
 */
export function fingerprint(inputs) {
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex").slice(0, 32);
}

/**
 * @param {string} file
 * @returns {Promise<string | undefined>} what the last finished run wrote, if one finished
 */
export async function readStamp(file) {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}

/**
 * @param {string} file
 * @param {string} value
 */
export async function writeStamp(file, value) {
  await mkdir(dirname(file), { recursive: true });
  const beside = `${file}.${process.pid}`;
  await writeFile(beside, `${value}\n`);
  await rename(beside, file);
}

/**
 * The tables of a TOML file whose header the test accepts, as text, so that an edit elsewhere in the file changes nothing.
 * @param {string} text
 * @param {(table: string) => boolean} accepts
 */
export function tomlTables(text, accepts) {
  let kept = false;
  return text
    .split("\n")
    .filter((line) => {
      const header = /^\[\[?([^\]"[]+)\]\]?\s*(#.*)?$/.exec(line);
      if (header) kept = accepts(String(header[1]).trim());
      return kept;
    })
    .join("\n");
}
