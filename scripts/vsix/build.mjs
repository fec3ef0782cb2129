import { cp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../lib/errors.mjs";
import { checkout } from "../lib/paths.mjs";
import { must } from "../lib/run.mjs";
import { faults } from "./contents.mjs";
import { vsixEntries } from "./listing.mjs";
import { buildPythonPart, isSource } from "./pythonPart.mjs";

/** @typedef {import("../lib/node.mjs").ProjectNode} ProjectNode */

const staging = join(checkout, ".twinlens-cache", "vsix");

/** @returns {Promise<string>} where `npm run package` puts the extension */
export async function vsixPath() {
  const { name, version } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8"));
  return join(checkout, `${name}-${version}.vsix`);
}

// vsce matches each file below its folder against each pattern, which takes half a minute where .venv is among them.
async function stage() {
  const { files } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8"));
  await rm(staging, { recursive: true, force: true });
  for (const pattern of ["package.json", ...files]) {
    const path = pattern.replace(/\/\*\*$/, "");
    await cp(join(checkout, path), join(staging, path), { recursive: true, filter: isSource });
  }
  const readme = join(staging, "README.md");
  await writeFile(readme, withoutPictures(await readFile(readme, "utf8")));
}

/**
 * VS Code shows a README's pictures only from a public address, and vsce refuses any other.
 * @param {string} markdown
 */
function withoutPictures(markdown) {
  return markdown.replace(/^!\[[^\]]*\]\((?!https:)[^)]*\)\n+/gm, "");
}

/**
 * Builds the extension into one file that VS Code installs.
 * @param {ProjectNode} project
 * @returns {Promise<string>} the file
 * @throws {UserError} where it does not build, or holds what it should not
 */
export async function buildVsix({ node }) {
  const file = await vsixPath();
  // A build that fails must not leave an older one to be tested in its place.
  await rm(file, { force: true });
  await buildPythonPart();
  await must([node, join(checkout, "scripts", "bundle.mjs")], "The extension could not be bundled.");
  const beside = `${file}.unfinished`;
  const vsce = join(checkout, "node_modules", "@vscode", "vsce", "vsce");
  const options = ["--no-dependencies", "--allow-missing-repository", "--out", beside];
  await stage();
  await must([node, vsce, "package", ...options], "vsce could not package the extension.", { cwd: staging });
  const found = faults(await vsixEntries(beside));
  if (found.length > 0) throw new UserError(`The packaged extension is not as it should be:\n  ${found.join("\n  ")}`);
  await rename(beside, file);
  return file;
}
