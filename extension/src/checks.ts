/** What the checks' lenses and fixes lead to: the classes that a patch's key matches, and the page of a check. */

import * as path from "node:path";
import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { PatchedClass } from "./protocol";
import type { Server } from "./server";

export function registerChecks(server: Server): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand("twinlens.showPatchMatches", (uri: string, key: string) =>
      showPatchMatches(server, uri, key),
    ),
    vscode.commands.registerCommand("twinlens.explainCheck", (page: string) =>
      vscode.commands.executeCommand("markdown.showPreviewToSide", vscode.Uri.parse(page)),
    ),
  );
}

interface ClassItem extends vscode.QuickPickItem {
  readonly found: PatchedClass;
}

async function showPatchMatches(server: Server, uri: string, key: string): Promise<void> {
  try {
    const { classes } = await server.ask("twinlens/patchMatches", { uri, key });
    if (classes.length === 0) {
      await vscode.window.showInformationMessage(`No class of the library matches ${key}.`);
      return;
    }
    const picked = await vscode.window.showQuickPick(classes.map(classItem), {
      title: `Replaced by ${key}`,
      placeHolder: "Pick one to open it beside",
      matchOnDescription: true,
    });
    if (picked !== undefined) {
      await openClass(picked.found);
    }
  } catch (error) {
    await showFailure(error);
  }
}

export function classItem(found: PatchedClass): ClassItem {
  return { found, label: found.name, description: path.basename(found.path) };
}

async function openClass({ path: file, line }: PatchedClass): Promise<void> {
  const start = new vscode.Position(line - 1, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(file), {
    viewColumn: vscode.ViewColumn.Beside,
    selection: new vscode.Range(start, start),
  });
}
