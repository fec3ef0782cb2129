import { spawn } from "node:child_process";
import { UserError } from "./errors.mjs";
import { checkout } from "./paths.mjs";

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {Record<string, string | undefined>} [env] added to this process's environment
 */

/**
 * Runs a program to its end with its output on this terminal, and answers its exit code.
 * @param {readonly string[]} command
 * @param {RunOptions} [options]
 * @returns {Promise<number>}
 */
export function run([program, ...args], { cwd = checkout, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(String(program), args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

/**
 * Runs a program to its end in silence.
 * @param {readonly string[]} command
 * @param {RunOptions} [options]
 * @returns {Promise<{code: number, output: string, errors: string}>} code 127 where there is no such program
 */
export function ask([program, ...args], { cwd = checkout, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(String(program), args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      errors += text;
    });
    child.on("error", (error) => {
      if ("code" in error && (error.code === "ENOENT" || error.code === "EACCES")) {
        resolve({ code: 127, output: "", errors: error.message });
      } else reject(error);
    });
    child.on("close", (code) => resolve({ code: code ?? 1, output, errors }));
  });
}

/**
 * Runs a program whose output matters only when it fails.
 * @param {readonly string[]} command
 * @param {string} failure the sentence for the person, after the program's own words
 * @param {RunOptions} [options]
 * @throws {UserError}
 */
export async function must(command, failure, options) {
  const { code, output, errors } = await ask(command, options);
  if (code !== 0) throw new UserError(`${output}${errors}\n${failure} The command was:\n  ${command.join(" ")}`);
}
