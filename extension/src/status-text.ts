/** What the status item says, apart from VS Code. */

import type { IndexStatus } from "./protocol";
import type { Interpreter } from "./python";

export type ServerState =
  | { readonly kind: "stopped" }
  | { readonly kind: "starting" }
  | { readonly kind: "running"; readonly interpreter: Interpreter }
  | { readonly kind: "failed"; readonly reason: string };

export interface Status {
  readonly text: string;
  readonly detail: string;
  readonly severity: "information" | "warning" | "error";
  readonly busy: boolean;
  readonly command: { readonly title: string; readonly command: string };
}

const SHOW_LOGS = { title: "Show Logs", command: "twinlens.showLogs" };
const RESTART = { title: "Restart Server", command: "twinlens.restartServer" };

/** What the status item says. `complaint` is what the person asked for and does not get. */
export function statusOf(server: ServerState, index: IndexStatus | undefined, complaint: string | undefined): Status {
  const quiet = { severity: "information", busy: false, command: SHOW_LOGS } as const;
  switch (server.kind) {
    case "stopped":
      return { ...quiet, text: "Twinlens: stopped", detail: "", command: RESTART };
    case "starting":
      return { ...quiet, text: "Twinlens: starting", detail: "", busy: true };
    case "failed":
      return { ...quiet, text: "Twinlens: not running", detail: server.reason, severity: "error" };
    case "running": {
      return {
        ...quiet,
        text: `Twinlens: ${indexText(index)}`,
        detail: complaint ?? indexDetail(index) ?? interpreterText(server.interpreter),
        severity: complaint !== undefined || index?.state === "failed" ? "warning" : "information",
        busy: index?.state === "starting" || index?.state === "building",
      };
    }
  }
}

/** `Python 3.12.1, torch 2.9.0, no transformers` */
export function interpreterText({ version, torch, transformers }: Interpreter): string {
  return [`Python ${version}`, named("torch", torch), named("transformers", transformers)].join(", ");
}

function named(name: string, version: string | null): string {
  return version === null ? `no ${name}` : `${name} ${version}`;
}

function indexText(index: IndexStatus | undefined): string {
  switch (index?.state) {
    case undefined:
    case "stopped":
      return "ready";
    case "starting":
      return "loading the index";
    case "building":
      return index.percent === null ? "building the index" : `building the index, ${index.percent} %`;
    case "ready":
      return `${index.definitions.toLocaleString("en")} definitions`;
    case "jaccard-only":
      return `${index.definitions.toLocaleString("en")} definitions, Jaccard only`;
    case "failed":
      return "no index";
  }
}

/** What the text leaves out; the line is short, and the hover names the command that adds what is missing. */
function indexDetail(index: IndexStatus | undefined): string | undefined {
  return index?.state === "failed" || index?.state === "jaccard-only" ? index.message : undefined;
}
