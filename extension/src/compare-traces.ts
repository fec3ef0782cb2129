/** Two traces side by side. */

import * as vscode from "vscode";
import type { TraceEntry } from "./protocol";
import { traceLabel } from "./trace-text";

/** Opens what tells `port` from `reference`. */
export async function compareTraces(reference: TraceEntry, port: TraceEntry): Promise<void> {
  if (reference.summary === null || port.summary === null) {
    const { name } = reference.summary === null ? reference : port;
    throw new Error(`${name} has no summary: its run was ended before it was written.`);
  }
  const title = `${traceLabel(reference)} ↔ ${traceLabel(port)}`;
  const [left, right] = [vscode.Uri.file(reference.summary), vscode.Uri.file(port.summary)];
  await vscode.commands.executeCommand("vscode.diff", left, right, title);
}
