/**
 * A file inside a VSIX.
 * @typedef {object} Entry
 * @property {string} path
 * @property {number} size bytes as packed
 */

const SIZE_LIMIT = 1.5 * 1024 * 1024;

export const REQUIRED = [
  "extension/package.json",
  "extension/readme.md",
  "extension/changelog.md",
  "extension/LICENSE.txt",
  "extension/dist/extension.js",
  "extension/extension/media/activity.svg",
  "extension/extension/icon.png",
  "extension/bundled/server/twinlens/__init__.py",
  "extension/bundled/server/twinlens/lsp/__main__.py",
  ...["attr", "attrs", "cattr", "cattrs", "exceptiongroup", "filelock", "lsprotocol", "pygls"].map(
    (library) => `extension/bundled/libs/${library}/__init__.py`,
  ),
  "extension/bundled/libs/typing_extensions.py",
];

const ALLOWED = [
  /^\[Content_Types\]\.xml$/,
  /^extension\.vsixmanifest$/,
  /^extension\/(package\.json|readme\.md|changelog\.md|TROUBLESHOOTING\.md|LICENSE\.txt)$/,
  /^extension\/extension\/(icon\.png|media\/[\w./-]+\.(svg|png|md))$/,
  /^extension\/dist\/(extension\.js|webview\/[\w-]+\.(js|css))$/,
  /^extension\/bundled\/server\/twinlens\/([\w/-]+\.py|py\.typed|[\w/-]+\.(json|toml|md|html|css|js))$/,
  /^extension\/bundled\/libs\/[\w.-]+\.dist-info\/[\w./-]+$/,
  /^extension\/bundled\/libs\/[\w/]+(\.pyi?|py\.typed)$/,
];

/**
 * What is wrong with the files of a VSIX: something missing, something that has no business in it, or too much of it.
 * @param {readonly Entry[]} entries
 * @returns {string[]} one sentence each
 */
export function faults(entries) {
  const paths = new Set(entries.map((entry) => entry.path));
  const size = entries.reduce((sum, entry) => sum + entry.size, 0);
  return [
    ...REQUIRED.filter((path) => !paths.has(path)).map((path) => `${path} is missing.`),
    ...[...paths]
      .filter((path) => !ALLOWED.some((rule) => rule.test(path)))
      .map((path) => `${path} is not meant to be shipped.`),
    ...(size > SIZE_LIMIT ? [`Its files take ${size} bytes packed; the limit is ${SIZE_LIMIT}.`] : []),
  ];
}
