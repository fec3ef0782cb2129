/** A class beside its match in VS Code's own diff editor, with each model's name kept or written as `Model`. */

import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { LibraryClass } from "./protocol";
import type { Server } from "./server";

const SCHEME = "twinlens-class";

export function registerCompare(server: Server): vscode.Disposable {
  const texts = new ClassTexts(server);
  return vscode.Disposable.from(
    texts,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, texts),
    vscode.commands.registerCommand("twinlens.compareWithMatch", (uri: string, name: string, match: LibraryClass) =>
      compare(uri, name, match, false),
    ),
    vscode.commands.registerCommand("twinlens.hideModelNames", () => reopen(true)),
    vscode.commands.registerCommand("twinlens.showModelNames", () => reopen(false)),
  );
}

/** What one side of a comparison shows; it travels in the query of its URI. */
interface Side {
  readonly uri: string;
  readonly name: string;
  readonly normalised: boolean;
}

async function compare(uri: string, name: string, match: LibraryClass, normalised: boolean): Promise<void> {
  const theirs = sideUri({ uri: vscode.Uri.file(match.path).toString(), name: match.name, normalised });
  const ours = sideUri({ uri, name, normalised });
  const title = `${match.name} (${match.model}) ↔ ${name}${normalised ? ", names hidden" : ""}`;
  await vscode.commands.executeCommand("vscode.diff", theirs, ours, title);
}

/** Opens the comparison in front anew, and closes the one that it replaces. */
async function reopen(normalised: boolean): Promise<void> {
  const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
  if (tab === undefined || !(tab.input instanceof vscode.TabInputTextDiff) || tab.input.original.scheme !== SCHEME) {
    return;
  }
  const before = tab.input;
  const [theirs, ours] = [before.original, before.modified].map((side) => sideUri({ ...sideOf(side), normalised }));
  const title = tab.label.replace(/, names hidden$/, "") + (normalised ? ", names hidden" : "");
  await vscode.commands.executeCommand("vscode.diff", theirs, ours, title);
  // A comparison in preview has been replaced already.
  const replaced = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).find((open) => shows(open, before));
  if (replaced !== undefined) {
    await vscode.window.tabGroups.close(replaced);
  }
}

function shows(tab: vscode.Tab, input: vscode.TabInputTextDiff): boolean {
  return tab.input instanceof vscode.TabInputTextDiff && tab.input.original.toString() === input.original.toString();
}

function sideUri(side: Side): vscode.Uri {
  const path = `${side.normalised ? "/names-hidden" : ""}/${side.name}.py`;
  return vscode.Uri.from({ scheme: SCHEME, path, query: JSON.stringify(side) });
}

function sideOf(uri: vscode.Uri): Side {
  return JSON.parse(uri.query) as Side;
}

/** The sides' texts; that of an open file follows what is typed. */
class ClassTexts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #following: vscode.Disposable;
  readonly onDidChange = this.#changed.event;

  constructor(server: Server) {
    this.#server = server;
    this.#following = vscode.workspace.onDidChangeTextDocument(({ document }) => {
      const shown = vscode.workspace.textDocuments.filter(({ uri }) => uri.scheme === SCHEME);
      for (const { uri } of shown.filter(({ uri }) => sideOf(uri).uri === document.uri.toString())) {
        this.#changed.fire(uri);
      }
    });
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    try {
      return (await this.#server.ask("twinlens/classText", { ...sideOf(uri) }, { token })).text;
    } catch (error) {
      await showFailure(error);
      return "";
    }
  }

  dispose(): void {
    this.#changed.dispose();
    this.#following.dispose();
  }
}
