import { statSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { UserError } from "./errors.mjs";
import { samples } from "./paths.mjs";

export const LAYERS = /** @type {const} */ (["lint", "extension", "e2e", "lsp", "python"]);

/** @typedef {(typeof LAYERS)[number]} Layer */

/**
 * @template {import("node:util").ParseArgsConfig} T
 * @param {T} config
 */
function parse(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    if (error instanceof TypeError) throw new UserError(error.message);
    throw error;
  }
}

/**
 * Which layers `npm test` runs, and what is handed on to a layer's own runner.
 * @param {readonly string[]} args
 * @returns {{layers: readonly Layer[], rest: readonly string[]}}
 * @throws {UserError}
 */
export function testOptions(args) {
  const { values, positionals } = parse({
    args: [...args],
    options: { only: { type: "string", multiple: true } },
    allowPositionals: true,
  });
  const only = (values.only ?? []).flatMap((value) => value.split(","));
  for (const name of only) {
    if (!LAYERS.some((layer) => layer === name)) {
      throw new UserError(`There is no layer ${name}. The layers are: ${LAYERS.join(", ")}.`);
    }
  }
  const layers = only.length === 0 ? LAYERS : LAYERS.filter((layer) => only.includes(layer));
  if (positionals.length > 0 && layers.length !== 1) {
    throw new UserError(`Say with --only which layer ${positionals.join(" ")} is for.`);
  }
  return { layers, rest: positionals };
}

/**
 * @param {readonly string[]} args
 * @param {string} cwd against which a folder is resolved
 * @returns {{folder: string, port: number | undefined}}
 * @throws {UserError}
 */
export function demoOptions(args, cwd) {
  const { values } = parse({ args: [...args], options: { folder: { type: "string" }, port: { type: "string" } } });
  const folder = values.folder === undefined ? samples : resolve(cwd, values.folder);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new UserError(`${folder} is no folder.`);
  return { folder, port: values.port === undefined ? undefined : portNumber(values.port) };
}

/** @param {string} text */
function portNumber(text) {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new UserError(`${text} is no port: give a number from 1 to 65535.`);
  return port;
}
