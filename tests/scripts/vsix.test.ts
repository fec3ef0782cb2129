import { describe, expect, it } from "vitest";
import { faults, REQUIRED } from "../../scripts/vsix/contents.mjs";

const good = [
  ...REQUIRED,
  "[Content_Types].xml",
  "extension.vsixmanifest",
  "extension/TROUBLESHOOTING.md",
  "extension/dist/webview/diff.js",
  "extension/bundled/server/twinlens/py.typed",
  "extension/bundled/libs/attr/__init__.pyi",
  "extension/bundled/libs/attrs-26.1.0.dist-info/licenses/LICENSE",
].map((path) => ({ path, size: 1 }));

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
    const large = { path: "extension/dist/webview/large.js", size: 1_572_865 - good.length };
    expect(faults([...good, large])).toEqual(["Its files take 1572865 bytes packed; the limit is 1572864."]);
    expect(faults([...good, { ...large, size: large.size - 1 }])).toEqual([]);
  });
});
