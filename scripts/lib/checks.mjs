import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkout, nodeModules, venvBin, venvPython } from "./paths.mjs";
import { run } from "./run.mjs";
import { heading, say, seconds } from "./say.mjs";

/**
 * One command whose exit code says whether all is well.
 * @typedef {object} Check
 * @property {string} name
 * @property {readonly string[]} command
 * @property {Record<string, string>} [env]
 * @property {string} [needs] the name of an earlier check without which this one says nothing
 * @property {boolean} [saysItself] whether its last line says how it went, so that nothing need follow
 */

// What runs in Node knows no DOM, and what runs in a page no Node: each has its own types.
const TYPESCRIPT_PROJECTS = ["tsconfig.json", "tests/e2e/tsconfig.json", "extension/webview/tsconfig.json"];

/**
 * Lint, format and types of both languages, and the layer rule.
 * @param {import("./node.mjs").ProjectNode} project
 * @returns {Check[]}
 */
export function lintChecks({ node }) {
  const tool = (/** @type {string} */ name, /** @type {string[]} */ ...args) => [join(venvBin, name), ...args];
  const script = (/** @type {string} */ file, /** @type {string[]} */ ...args) => [
    node,
    join(nodeModules, file),
    ...args,
  ];
  return [
    { name: "Python lint (ruff)", command: tool("ruff", "check", "--no-cache") },
    { name: "Python format (ruff)", command: tool("ruff", "format", "--check", "--no-cache") },
    { name: "Python types (ty)", command: tool("ty", "check", "--python", venvPython) },
    { name: "Python layers (import-linter)", command: tool("lint-imports", "--no-cache") },
    {
      name: "TypeScript lint and format (Biome)",
      command: script("@biomejs/biome/bin/biome", "check", "--error-on-warnings"),
    },
    ...TYPESCRIPT_PROJECTS.filter((file) => existsSync(join(checkout, file))).map((file) => ({
      name: `TypeScript types (tsc, ${file})`,
      command: script("typescript/bin/tsc", "--noEmit", "-p", file),
    })),
  ];
}

/**
 * Runs one check under a heading of its own.
 * @param {Check} check
 * @returns {Promise<boolean>} whether it passed
 */
export async function passes({ name, command, env = {}, saysItself = false }) {
  heading(name);
  const start = performance.now();
  const code = await run(command, { env });
  if (!saysItself)
    say(`${name}: ${code === 0 ? "passed" : `failed (exit code ${code})`} in ${seconds(performance.now() - start)}`);
  return code === 0;
}

/**
 * Runs all of them, so that one failure does not hide another.
 * @param {readonly Check[]} checks
 * @returns {Promise<string[]>} the names of those that failed
 */
export async function failures(checks) {
  /** @type {string[]} */
  const failed = [];
  for (const check of checks) {
    if (check.needs && failed.includes(check.needs)) {
      heading(check.name);
      say(`${check.name}: not run, because this failed: ${check.needs}`);
      failed.push(check.name);
    } else if (!(await passes(check))) failed.push(check.name);
  }
  return failed;
}
