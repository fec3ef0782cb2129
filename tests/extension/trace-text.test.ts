import { describe, expect, it } from "vitest";
import type { TraceEntry } from "../../extension/src/protocol";
import {
  durationText,
  nameComplaint,
  previousOf,
  progressText,
  sizeText,
  traceDescription,
  traceLabel,
  traceTooltip,
  whenText,
} from "../../extension/src/trace-text";

const NOW = new Date("2026-11-30T12:00:00Z");
const TRACE: TraceEntry = {
  folder: "/home/me/.twinlens/traces/LumenModel-20261130-115800",
  name: "LumenModel-20261130-115800",
  className: "LumenModel",
  target: "lumen/modeling_lumen.py::LumenModel",
  dtype: "float32",
  created: "2026-11-30T11:58:00Z",
  seconds: 0.0125,
  bytes: 1_430_000,
  status: "complete",
  error: "",
  summary: "/home/me/summary.json",
};

describe("a trace in the list", () => {
  it("is called by its class until it is renamed", () => {
    expect(traceLabel(TRACE)).toBe("LumenModel");
    expect(traceLabel({ ...TRACE, name: "LumenModel-20261130-115800-2" })).toBe("LumenModel");
    expect(traceLabel({ ...TRACE, name: "before the fix" })).toBe("before the fix");
    expect(traceLabel({ ...TRACE, className: "", name: "LumenModel-20261130-115800" })).toBe(TRACE.name);
  });

  it("says when, in which dtype, how long and how large", () => {
    expect(traceDescription(TRACE, NOW)).toBe("2 min ago · float32 · 13 ms · 1.4 MB");
  });

  it("says its class where its name does not, and that it did not finish", () => {
    const renamed = { ...TRACE, name: "reference", seconds: null, status: "unfinished" } as const;
    expect(traceDescription(renamed, NOW)).toBe("LumenModel · 2 min ago · float32 · 1.4 MB · not finished");
  });

  it("shows its error in the tooltip, whatever Markdown is in it", () => {
    const raised = { ...TRACE, status: "raised", error: "ValueError: *shape* [2]" } as const;
    expect(traceTooltip(raised)).toContain("$(error) ValueError: \\*shape\\* \\[2\\]");
  });
});

describe("times and sizes", () => {
  it.each([
    ["2026-11-30T11:59:30Z", "just now"],
    ["2026-11-30T11:01:00Z", "59 min ago"],
    ["2026-11-30T02:00:00Z", "10 h ago"],
    ["2026-11-28T12:00:00Z", "2026-11-28"],
    ["", ""],
  ])("%s reads %s", (created, text) => {
    expect(whenText(created, NOW)).toBe(text);
  });

  it.each([
    [0.0001, "1 ms"],
    [0.25, "250 ms"],
    [12.34, "12.3 s"],
    [125, "2 min 5 s"],
  ])("%d seconds read %s", (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });

  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1500, "1.5 kB"],
    [234_000_000, "234 MB"],
    [20_000_000_000, "20.0 GB"],
  ])("%d bytes read %s", (bytes, text) => {
    expect(sizeText(bytes)).toBe(text);
  });
});

describe("the previous trace of a class", () => {
  it("is the next older one of that class", () => {
    const other = { ...TRACE, folder: "/b", className: "LumenMLP" };
    const older = { ...TRACE, folder: "/c" };
    expect(previousOf(TRACE, [TRACE, other, older])).toBe(older);
    expect(previousOf(older, [TRACE, other, older])).toBeUndefined();
  });
});

describe("progress", () => {
  it("names the module and counts", () => {
    expect(progressText("LumenModel.layers.0", 1)).toBe("LumenModel.layers.0 (1 call so far)");
    expect(progressText("LumenModel.layers.0", 12)).toBe("LumenModel.layers.0 (12 calls so far)");
    expect(progressText("importing modeling_lumen.py", null)).toBe("importing modeling_lumen.py");
  });
});

describe("a new name", () => {
  it("leads out of no folder and is not taken", () => {
    expect(nameComplaint("reference fp32", ["other"])).toBeUndefined();
    expect(nameComplaint("../../etc", [])).toBeDefined();
    expect(nameComplaint("a/b", [])).toBeDefined();
    expect(nameComplaint(" ", [])).toBeDefined();
    expect(nameComplaint("other", ["other"])).toBe("There is a trace other already.");
  });
});
