import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { demoOptions, testOptions } from "../../scripts/lib/options.mjs";
import { samples } from "../../scripts/lib/paths.mjs";

describe("npm test", () => {
  it("runs every layer, Python last, when nothing is said", () => {
    expect(testOptions([])).toEqual({ layers: ["lint", "extension", "e2e", "lsp", "python"], rest: [] });
  });

  it("runs the layers that --only names, in its own order", () => {
    expect(testOptions(["--only", "python,lint"]).layers).toEqual(["lint", "python"]);
    expect(testOptions(["--only", "python", "--only", "e2e"]).layers).toEqual(["e2e", "python"]);
  });

  it("hands the rest to the one layer that is named", () => {
    expect(testOptions(["--only", "e2e", "hover.spec.ts", "--", "-g", "hovering"])).toEqual({
      layers: ["e2e"],
      rest: ["hover.spec.ts", "-g", "hovering"],
    });
  });

  it("names the layers there are when asked for another", () => {
    expect(() => testOptions(["--only", "unit"])).toThrow(
      "There is no layer unit. The layers are: lint, extension, e2e, lsp, python.",
    );
  });

  it("does not guess which layer an argument is for", () => {
    expect(() => testOptions(["hover.spec.ts"])).toThrow("Say with --only which layer hover.spec.ts is for.");
  });
});

describe("npm run demo", () => {
  it("opens the samples on any free port when nothing is said", () => {
    expect(demoOptions([], "/")).toEqual({ folder: samples, port: undefined });
  });

  it("opens the folder that is named, seen from where the person typed", () => {
    expect(demoOptions(["--folder", "lumen", "--port", "8123"], samples)).toEqual({
      folder: join(samples, "lumen"),
      port: 8123,
    });
    expect(demoOptions(["--folder", tmpdir()], samples).folder).toBe(tmpdir());
  });

  it("refuses what is no folder, no port, or no option", () => {
    const missing = join(dirname(samples), "nowhere");
    expect(() => demoOptions(["--folder", missing], "/")).toThrow(`${missing} is no folder.`);
    expect(() => demoOptions(["--port", "0"], "/")).toThrow("0 is no port: give a number from 1 to 65535.");
    expect(() => demoOptions(["--prot", "1"], "/")).toThrow("Unknown option '--prot'");
  });
});
