import { describe, expect, it } from "vitest";
import { faults } from "../../scripts/vsix/contents.mjs";

const good = [
  "[Content_Types].xml",
  "extension.vsixmanifest",
  "extension/package.json",
  "extension/readme.md",
  "extension/changelog.md",
  "extension/TROUBLESHOOTING.md",
  "extension/LICENSE.txt",
  "extension/dist/extension.js",
  "extension/dist/webview/diff.js",
  "extension/extension/icon.png",
  "extension/bundled/server/twinlens/__init__.py",
  "extension/bundled/server/twinlens/lsp/__main__.py",
  "extension/bundled/server/twinlens/py.typed",
  "extension/bundled/libs/attr/__init__.py",
  "extension/bundled/libs/attr/__init__.pyi",
  "extension/bundled/libs/attrs/__init__.py",
  "extension/bundled/libs/attrs-26.1.0.dist-info/licenses/LICENSE",
  "extension/bundled/libs/cattr/__init__.py",
  "extension/bundled/libs/cattrs/__init__.py",
  "extension/bundled/libs/exceptiongroup/__init__.py",
  "extension/bundled/libs/lsprotocol/__init__.py",
  "extension/bundled/libs/pygls/__init__.py",
  "extension/bundled/libs/typing_extensions.py",
].map((path) => ({ path, size: 100 }));

describe("the files of a VSIX", () => {
  it("are as they should be", () => {
    expect(faults(good)).toEqual([]);
  });

  it.each([
    "extension/bundled/libs/cattrs/_speedups.cpython-311-x86_64-linux-gnu.so",
    "extension/bundled/server/twinlens/__pycache__/__init__.cpython-311.pyc",
    "extension/dist/extension.js.map",
    "extension/extension/src/extension.ts",
    "extension/node_modules/preact/package.json",
    "extension/.venv/bin/python",
    "extension/tests/samples/lumen/modeling_lumen.py",
  ])("do not hold %s", (path) => {
    expect(faults([...good, { path, size: 1 }])).toEqual([`${path} is not meant to be shipped.`]);
  });

  it("hold the server and all that it imports", () => {
    const without = good.filter(({ path }) => !path.includes("/pygls/"));
    expect(faults(without)).toEqual(["extension/bundled/libs/pygls/__init__.py is missing."]);
  });

  it("are small together", () => {
    const large = { path: "extension/dist/webview/large.js", size: 2_000_000 };
    expect(faults([...good, large])).toEqual(["Its files take 2002300 bytes packed; the limit is 1572864."]);
  });
});
