/** Traces: the commands of the lenses, and the view's. */

import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { TraceEntry } from "./protocol";
import type { Server } from "./server";
import { TraceRunner } from "./trace-run";
import { nameComplaint, previousOf, traceLabel, traceRows } from "./trace-text";
import { chooseTrace } from "./trace-with";
import { TracesTree } from "./traces-view";

export function registerTraces(server: Server): vscode.Disposable {
  const runner = new TraceRunner(server);
  const tree = new TracesTree(server);
  const view = vscode.window.createTreeView("twinlens.traces", { treeDataProvider: tree });
  const onEntry = (command: string, action: (entry: TraceEntry) => Promise<unknown>) =>
    vscode.commands.registerCommand(command, async (entry: TraceEntry | undefined) => {
      const chosen = entry ?? view.selection[0] ?? (await pickTrace(await tree.traces(), "Which trace?"));
      if (chosen !== undefined) {
        await action(chosen).catch(showFailure);
      }
    });
  return vscode.Disposable.from(
    runner,
    tree,
    view,
    runner.onDidTrace(async (entry) => {
      const listed = await tree.reload(entry.folder);
      if (listed !== undefined) {
        await view.reveal(listed, { select: true, focus: false });
      }
    }),
    vscode.commands.registerCommand("twinlens.traceForward", (uri?: string, name?: string) =>
      atPlace(uri, name, (place) => runner.run(place)),
    ),
    vscode.commands.registerCommand("twinlens.traceWith", (uri?: string, name?: string) =>
      atPlace(uri, name, async (place) => {
        const choice = await chooseTrace(server, ...place);
        if (choice === "new recipe") {
          await runner.newRecipe(place);
        } else if (choice !== undefined) {
          await runner.run(place, choice);
        }
      }),
    ),
    vscode.commands.registerCommand("twinlens.traces.refresh", () => tree.refresh().catch(showFailure)),
    onEntry("twinlens.traces.openSummary", openSummary),
    onEntry("twinlens.traces.compareWith", async (entry) => {
      const others = (await tree.traces()).filter(({ folder }) => folder !== entry.folder);
      const reference = await pickTrace(others, `Compare ${traceLabel(entry)} with which reference?`);
      return reference && compareTraces(reference, entry);
    }),
    onEntry("twinlens.traces.compareWithPrevious", async (entry) => {
      const previous = previousOf(entry, await tree.traces());
      if (previous === undefined) {
        throw new Error(`There is no earlier trace of ${entry.className}.`);
      }
      return compareTraces(previous, entry);
    }),
    onEntry("twinlens.traces.reveal", (entry) =>
      Promise.resolve(vscode.commands.executeCommand("revealInExplorer", vscode.Uri.file(entry.folder))),
    ),
    onEntry("twinlens.traces.rename", async (entry) => {
      await rename(entry, await tree.traces());
      await tree.list();
    }),
    onEntry("twinlens.traces.delete", async (entry) => {
      await remove(entry);
      await tree.list();
    }),
  );
}

type Place = readonly [uri: string, name: string];

/** The class of a lens; from the palette, one of the active file, those nearest above the cursor first. */
async function atPlace(
  uri: string | undefined,
  name: string | undefined,
  action: (place: Place) => Promise<void>,
): Promise<void> {
  try {
    const place: Place | undefined = uri !== undefined && name !== undefined ? [uri, name] : await pickPlace();
    if (place !== undefined) {
      await action(place);
    }
  } catch (error) {
    await showFailure(error);
  }
}

async function pickPlace(): Promise<Place | undefined> {
  const editor = vscode.window.activeTextEditor;
  const lenses =
    editor &&
    (await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", editor.document.uri));
  const line = editor?.selection.active.line ?? 0;
  const distance = (lens: vscode.CodeLens) => {
    const above = line - lens.range.start.line;
    return above >= 0 ? above : Number.MAX_SAFE_INTEGER + above;
  };
  const names = (lenses ?? [])
    .filter(({ command }) => command?.command === "twinlens.traceForward")
    .sort((one, other) => distance(one) - distance(other))
    .map(({ command }) => String(command?.arguments?.[1]));
  if (editor === undefined || names.length === 0) {
    await vscode.window.showInformationMessage("Open a Python file of a trusted workspace that defines a model.");
    return undefined;
  }
  const picked = await vscode.window.showQuickPick([...new Set(names)], { title: "Trace which class?" });
  return picked === undefined ? undefined : [editor.document.uri.toString(), picked];
}

async function pickTrace(traces: readonly TraceEntry[], title: string): Promise<TraceEntry | undefined> {
  const picked = await vscode.window.showQuickPick(traceRows(traces), { title, matchOnDescription: true });
  return picked?.entry;
}

async function openSummary(entry: TraceEntry): Promise<void> {
  if (entry.summary === null) {
    throw new Error(`${entry.name} has no summary: its run was ended before it was written.`);
  }
  await vscode.window.showTextDocument(vscode.Uri.file(entry.summary));
}

/** Opens the page that tells `port` from `reference`. */
function compareTraces(reference: TraceEntry, port: TraceEntry): Thenable<unknown> {
  return vscode.commands.executeCommand("twinlens.compareTraces", reference.folder, port.folder);
}

async function rename(entry: TraceEntry, traces: readonly TraceEntry[]): Promise<void> {
  const taken = traces.map(({ name }) => name).filter((name) => name !== entry.name);
  const name = await vscode.window.showInputBox({
    title: "Rename trace",
    value: entry.name,
    validateInput: (text) => nameComplaint(text, taken),
  });
  if (name !== undefined && name !== entry.name) {
    const from = vscode.Uri.file(entry.folder);
    await vscode.workspace.fs.rename(from, vscode.Uri.joinPath(from, "..", name));
  }
}

async function remove(entry: TraceEntry): Promise<void> {
  const detail = `${entry.folder} is deleted for good.`;
  const choice = await vscode.window.showWarningMessage(
    `Delete the trace ${entry.name}?`,
    { modal: true, detail },
    "Delete",
  );
  if (choice === "Delete") {
    await vscode.workspace.fs.delete(vscode.Uri.file(entry.folder), { recursive: true, useTrash: false });
  }
}
