import { describe, expect, it } from "vitest";
import type { IndexStatus } from "../../extension/src/protocol";
import { type ServerState, statusOf } from "../../extension/src/status-text";

const RUNNING: ServerState = {
  kind: "running",
  interpreter: { path: "/usr/bin/python3", source: "PATH", version: "3.12.1", torch: "2.9.0", transformers: null },
};
const READY: IndexStatus = {
  state: "ready",
  percent: null,
  definitions: 10020,
  library: "transformers 5.24.0",
  message: "10,020 definitions of transformers 5.24.0.",
  remedy: null,
};

describe("the status item", () => {
  it("counts the definitions once the index is there", () => {
    expect(statusOf(RUNNING, READY, undefined)).toEqual({
      text: "Twinlens: 10,020 definitions",
      detail: "Python 3.12.1, torch 2.9.0, no transformers",
      severity: "information",
      busy: false,
      command: { title: "Show Logs", command: "twinlens.showLogs" },
    });
  });

  it("is busy and shows the percentage while the index is built", () => {
    const building = { ...READY, state: "building", percent: 43, message: "Reading the library (43 %)." } as const;
    expect(statusOf(RUNNING, building, undefined)).toMatchObject({
      text: "Twinlens: building the index, 43 %",
      busy: true,
    });
  });

  it("names what is missing", () => {
    const lacking = {
      ...READY,
      state: "jaccard-only",
      message: "10,020 definitions, compared by identifiers alone: the interpreter lacks faiss-cpu.",
      remedy: "/usr/bin/python3 -m pip install faiss-cpu",
    } as const;
    const status = statusOf(RUNNING, lacking, undefined);
    expect(status.text).toBe("Twinlens: 10,020 definitions, Jaccard only");
    expect(status.detail).toBe(lacking.message);
  });

  it("warns of an interpreter that the person named and does not get", () => {
    const complaint = "The setting twinlens.interpreter names /gone, which does not exist or cannot be run.";
    const status = statusOf(RUNNING, READY, complaint);
    expect(status.severity).toBe("warning");
    expect(status.detail).toContain(complaint);
  });

  it("says why the server does not run", () => {
    const failed: ServerState = { kind: "failed", reason: "No Python 3.10 or newer was found." };
    expect(statusOf(failed, undefined, undefined)).toMatchObject({
      text: "Twinlens: not running",
      detail: "No Python 3.10 or newer was found.",
      severity: "error",
    });
  });

  it("offers to start a server that was stopped", () => {
    expect(statusOf({ kind: "stopped" }, undefined, undefined).command.command).toBe("twinlens.restartServer");
  });
});
