// Bundles the extension and its pages into dist/. Run by the project's own Node: `npm run package` and `npm run watch` do.
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { build, context } from "esbuild";
import { checkout } from "./lib/paths.mjs";

const watch = process.argv.includes("--watch");
const dist = join(checkout, "dist");

/** @type {import("esbuild").BuildOptions} */
const common = { bundle: true, minify: !watch, sourcemap: watch, logLevel: "warning", absWorkingDir: checkout };

/** @type {import("esbuild").BuildOptions} */
const extension = {
  ...common,
  entryPoints: ["extension/src/extension.ts"],
  outfile: "dist/extension.js",
  platform: "node",
  format: "cjs",
  // The oldest VS Code that package.json allows runs extensions on Node 20.
  target: "node20",
  external: ["vscode"],
};

/** @type {import("esbuild").BuildOptions} */
const pages = {
  ...common,
  entryPoints: pageEntries(join(checkout, "extension", "webview")),
  outdir: "dist/webview",
  platform: "browser",
  format: "iife",
  target: "es2023",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "text" },
};

/**
 * Each folder of webview/ with a main.ts or main.tsx is a page, bundled to dist/webview/<folder>.js and .css.
 * @param {string} folder
 */
function pageEntries(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((page) =>
    ["main.ts", "main.tsx"]
      .map((name) => join(folder, page, name))
      .filter((file) => existsSync(file))
      .map((file) => ({ in: file, out: page })),
  );
}

const bundles = [extension, pages].filter(({ entryPoints }) => Array.isArray(entryPoints) && entryPoints.length > 0);
if (watch) {
  for (const options of bundles) await (await context({ ...options, logLevel: "info" })).watch();
} else {
  await rm(dist, { recursive: true, force: true });
  for (const options of bundles) await build(options);
}
