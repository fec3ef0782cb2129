import { UserError } from "../lib/errors.mjs";
import { venvPython } from "../lib/paths.mjs";
import { ask } from "../lib/run.mjs";

const LIST =
  "import json, sys, zipfile;" +
  "print(json.dumps([{'path': i.filename, 'size': i.compress_size} for i in zipfile.ZipFile(sys.argv[1]).infolist()]))";

/**
 * @param {string} file
 * @returns {Promise<import("./contents.mjs").Entry[]>}
 */
export async function vsixEntries(file) {
  const { code, output, errors } = await ask([venvPython, "-I", "-c", LIST, file]);
  if (code !== 0) throw new UserError(`${file} can't be read as a VSIX: ${errors.trim().split("\n").at(-1)}`);
  return JSON.parse(output);
}
