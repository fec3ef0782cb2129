import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { checkout, nodeModules } from "../lib/paths.mjs";
import { must } from "../lib/run.mjs";
import { say } from "../lib/say.mjs";
import { fingerprint, readStamp, writeStamp } from "../lib/stamp.mjs";

/** @typedef {import("../lib/node.mjs").ProjectNode} ProjectNode */

const stamp = join(nodeModules, ".twinlens-stamp");

/** @param {ProjectNode} project */
export async function ensureNodeModules({ node, npm, version, npmEnv }) {
  const wanted = fingerprint([version, await readFile(join(checkout, "package-lock.json"), "utf8")]);
  if ((await readStamp(stamp)) === wanted) return;
  say("Installing the npm packages into node_modules (half a minute)…");
  const failure =
    "npm could not install node_modules. If package.json changed, npm install brings package-lock.json after it.";
  await must([node, npm, "ci", "--loglevel=error"], failure, { env: npmEnv });
  await writeStamp(stamp, wanted);
}
