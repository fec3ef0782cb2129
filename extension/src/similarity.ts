/** Similar classes: the quick pick of matches for the class at the cursor, and the index over the library. */

import * as path from "node:path";
import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { SimilarClass } from "./protocol";
import type { Server } from "./server";

export function registerSimilarity(server: Server): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand("twinlens.showSimilarClasses", () => showSimilarClasses(server)),
    vscode.commands.registerCommand("twinlens.rebuildIndex", () => rebuildIndex(server)),
  );
}

interface MatchItem extends vscode.QuickPickItem {
  readonly match: SimilarClass;
}

async function showSimilarClasses(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    await vscode.window.showInformationMessage("Open a Python file and put the cursor into a class.");
    return;
  }
  try {
    const { definition, note, matches } = await server.ask("twinlens/similarClasses", {
      uri: editor.document.uri.toString(),
      position: editor.selection.active,
    });
    if (matches.length === 0) {
      await vscode.window.showInformationMessage(note ?? `Nothing in the library resembles ${definition}.`);
      return;
    }
    const picked = await vscode.window.showQuickPick(matches.map(matchItem), {
      title: `Similar to ${definition}`,
      placeHolder: note ?? "Pick one to open it beside",
      matchOnDescription: true,
    });
    if (picked !== undefined) {
      await openBeside(picked.match);
    }
  } catch (error) {
    await showFailure(error);
  }
}

export function matchItem(match: SimilarClass): MatchItem {
  const details = [
    scoresOf(match),
    match.inBoth ? "✓ among the five best by both" : undefined,
    match.twins.length > 0 ? `same as ${match.twins.join(", ")}` : undefined,
    match.ancestors.length > 0 ? `from ${match.ancestors.join(", ")}` : undefined,
  ];
  return {
    match,
    label: match.name,
    description: `${match.model} · ${path.basename(match.path)}`,
    detail: details.filter((part) => part !== undefined).join(" · "),
  };
}

export function scoresOf({ embedding, jaccard }: SimilarClass): string {
  const written = `Jaccard ${jaccard.toFixed(2)}`;
  return embedding === null ? written : `embedding ${embedding.toFixed(2)} · ${written}`;
}

export async function openBeside(match: SimilarClass): Promise<void> {
  const start = new vscode.Position(match.line - 1, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(match.path), {
    viewColumn: vscode.ViewColumn.Beside,
    selection: new vscode.Range(start, start),
  });
}

async function rebuildIndex(server: Server): Promise<void> {
  const where = {
    location: vscode.ProgressLocation.Notification,
    title: "Twinlens: building the index",
    cancellable: true,
  };
  try {
    await vscode.window.withProgress(where, async (progress, token) => {
      let before = 0;
      const listening = server.onNotification("twinlens/indexStatus", ({ percent }) => {
        if (percent !== null) {
          progress.report({ message: `${percent} %`, increment: percent - before });
          before = percent;
        }
      });
      try {
        await server.ask("twinlens/rebuildIndex", {}, { token, milliseconds: null });
      } finally {
        listening.dispose();
      }
    });
  } catch (error) {
    await showFailure(error);
  }
}
