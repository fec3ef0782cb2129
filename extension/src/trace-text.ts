/** How a trace reads in a list: its label, description and tooltip. */

import type { TraceEntry } from "./protocol";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The class of a trace that was never renamed, else its name. */
export function traceLabel({ name, className }: TraceEntry): string {
  return className !== "" && new RegExp(`^${className}-\\d{8}-\\d{6}(-\\d+)?$`).test(name) ? className : name;
}

export function traceDescription(entry: TraceEntry, now: Date): string {
  const parts = [
    traceLabel(entry) === entry.className ? "" : entry.className,
    whenText(entry.created, now),
    entry.dtype,
    entry.seconds === null ? "" : durationText(entry.seconds),
    sizeText(entry.bytes),
    entry.status === "unfinished" ? "not finished" : "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

/** Rows of a quick pick, each with its trace. */
export function traceRows(traces: readonly TraceEntry[]) {
  const now = new Date();
  return traces.map((entry) => ({ label: traceLabel(entry), description: traceDescription(entry, now), entry }));
}

/** Markdown. */
export function traceTooltip(entry: TraceEntry): string {
  const rows = [
    `**${entry.name}**`,
    entry.target === "" ? undefined : `Target: \`${entry.target}\``,
    entry.created === "" ? undefined : `Traced: ${entry.created.replace("T", " ").replace("Z", " UTC")}`,
    entry.error === "" ? undefined : `$(error) ${escapeMarkdown(entry.error)}`,
    entry.status === "unfinished" ? "The run was ended before its forward returned." : undefined,
  ];
  return rows.filter((row) => row !== undefined).join("\n\n");
}

/** `created` is UTC in ISO 8601, or empty. */
export function whenText(created: string, now: Date): string {
  const then = Date.parse(created);
  if (Number.isNaN(then)) {
    return "";
  }
  const age = now.getTime() - then;
  if (age < MINUTE) {
    return "just now";
  }
  if (age < HOUR) {
    return `${Math.floor(age / MINUTE)} min ago`;
  }
  if (age < DAY) {
    return `${Math.floor(age / HOUR)} h ago`;
  }
  return created.slice(0, 10);
}

export function durationText(seconds: number): string {
  if (seconds < 1) {
    return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  }
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function sizeText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** What the notification says while a trace runs. */
export function progressText(detail: string, count: number | null): string {
  return count === null ? detail : `${detail} (${count} ${count === 1 ? "call" : "calls"} so far)`;
}

/** The trace of the same class before `entry`; `traces` are the newest first. */
export function previousOf(entry: TraceEntry, traces: readonly TraceEntry[]): TraceEntry | undefined {
  const at = traces.findIndex(({ folder }) => folder === entry.folder);
  return traces.slice(at + 1).find(({ className }) => className === entry.className);
}

/** Why a folder cannot be renamed to `name`, or undefined. */
export function nameComplaint(name: string, taken: readonly string[]): string | undefined {
  if (name.trim() === "" || name.startsWith(".")) {
    return "Write a name that does not begin with a dot.";
  }
  if (/[\\/:*?"<>|]/.test(name)) {
    return 'A name has none of \\ / : * ? " < > |';
  }
  return taken.includes(name) ? `There is a trace ${name} already.` : undefined;
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!<>|]/g, "\\$&");
}
