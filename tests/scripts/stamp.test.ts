import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fingerprint, readStamp, tomlTables, writeStamp } from "../../scripts/lib/stamp.mjs";

describe("a fingerprint", () => {
  it("is the same for the same inputs, and another for any other", () => {
    expect(fingerprint(["a", [3, 11]])).toBe(fingerprint(["a", [3, 11]]));
    expect(fingerprint(["a", [3, 11]])).not.toBe(fingerprint(["a", [3, 12]]));
    expect(fingerprint(["ab", "c"])).not.toBe(fingerprint(["a", "bc"]));
  });
});

describe("a stamp", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "twinlens-stamp-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("is absent until a run has finished", async () => {
    expect(await readStamp(join(folder, "missing", "stamp"))).toBeUndefined();
  });

  it("reads back as written and leaves nothing beside it", async () => {
    await writeStamp(join(folder, "inner", "stamp"), "abc");
    expect(await readStamp(join(folder, "inner", "stamp"))).toBe("abc");
    expect(readdirSync(join(folder, "inner"))).toEqual(["stamp"]);
  });
});

describe("the tables of a TOML file", () => {
  const toml = `[project]
name = "x"
dependencies = [
    "a[extra]>=1",
]

[tool.ruff]
line-length = 120

[[tool.importlinter.contracts]]
name = "layers"

[dependency-groups] # of developers
dev = ["b"]
`;
  const packages = (table: string) => table === "project" || table === "dependency-groups";

  it("are those that are asked for, whole", () => {
    expect(tomlTables(toml, packages)).toBe(
      '[project]\nname = "x"\ndependencies = [\n    "a[extra]>=1",\n]\n\n[dependency-groups] # of developers\ndev = ["b"]\n',
    );
  });

  it("do not change with a table that is not asked for", () => {
    expect(tomlTables(toml.replace("120", "100"), packages)).toBe(tomlTables(toml, packages));
  });
});
