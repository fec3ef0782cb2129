/** The view Similar Classes: the definitions of the active file, and under each what resembles it. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { LibraryClass, SimilarClass, SimilarDefinition } from "./protocol";
import type { Server } from "./server";
import { openBeside, scoresOf } from "./similarity";

const VIEW = "twinlens.similarClasses";
const PAUSE_MILLISECONDS = 400;
const READING_MILLISECONDS = 60_000;

interface DefinitionNode {
  readonly kind: "definition";
  readonly uri: vscode.Uri;
  readonly definition: SimilarDefinition;
}

interface MatchNode {
  readonly kind: "match";
  readonly uri: vscode.Uri;
  readonly definition: SimilarDefinition;
  readonly match: SimilarClass;
}

type Node = DefinitionNode | MatchNode;

export function registerSimilarClassesView(server: Server): vscode.Disposable {
  const tree = new SimilarClassesTree(server);
  const view = vscode.window.createTreeView(VIEW, { treeDataProvider: tree, showCollapseAll: true });
  tree.onNote((note) => {
    view.message = note ?? "";
  });
  tree.follow(view.visible);
  return vscode.Disposable.from(
    tree,
    view,
    view.onDidChangeVisibility(({ visible }) => tree.follow(visible)),
    vscode.commands.registerCommand("twinlens.view.openMatch", (node: MatchNode) => openBeside(node.match)),
    vscode.commands.registerCommand("twinlens.view.compare", (node: MatchNode) =>
      vscode.commands.executeCommand("twinlens.compareWithMatch", ...target(node)),
    ),
    vscode.commands.registerCommand("twinlens.view.inherit", (node: MatchNode) =>
      vscode.commands.executeCommand("twinlens.inheritFromMatch", ...target(node)),
    ),
  );
}

function target({ uri, definition, match }: MatchNode): [string, string, LibraryClass] {
  return [uri.toString(), definition.name, match];
}

class SimilarClassesTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #noted = new vscode.EventEmitter<string | undefined>();
  readonly #subscriptions: vscode.Disposable;
  #pause: NodeJS.Timeout | undefined;
  #isVisible: boolean;
  #shown: readonly DefinitionNode[] = [];
  #asking: Promise<readonly DefinitionNode[]> | undefined;
  readonly onDidChangeTreeData = this.#changed.event;
  readonly onNote = this.#noted.event;

  constructor(server: Server) {
    this.#server = server;
    this.#isVisible = false;
    this.#subscriptions = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(() => this.refresh()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === vscode.window.activeTextEditor?.document) {
          this.refresh();
        }
      }),
      server.onDidChangeState(() => this.refresh()),
      server.onNotification("twinlens/indexStatus", ({ state }) => {
        if (state === "ready" || state === "jaccard-only") {
          this.refresh();
        }
      }),
    );
  }

  /** A view that nobody sees asks nothing. */
  follow(isVisible: boolean): void {
    this.#isVisible = isVisible;
    this.refresh();
  }

  refresh(): void {
    clearTimeout(this.#pause);
    if (!this.#isVisible) {
      return;
    }
    this.#pause = setTimeout(() => void this.#show(), PAUSE_MILLISECONDS);
  }

  /** Asks first and draws then: while rows are drawn VS Code knows none of them, and a row's button would miss it. */
  async #show(): Promise<void> {
    const asking = this.#definitions();
    this.#asking = asking;
    const definitions = await asking;
    if (this.#asking === asking && !isDeepStrictEqual(definitions, this.#shown)) {
      this.#shown = definitions;
      this.#changed.fire(undefined);
    }
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node === undefined) {
      return [...this.#shown];
    }
    return node.kind === "definition"
      ? node.definition.matches.map((match) => ({ kind: "match", uri: node.uri, definition: node.definition, match }))
      : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return node.kind === "definition" ? definitionItem(node) : matchItem(node);
  }

  async #definitions(): Promise<readonly DefinitionNode[]> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "python" || this.#server.state.kind !== "running") {
      this.#noted.fire("Open a modeling file to see which library classes resemble its own.");
      return [];
    }
    try {
      const uri = document.uri;
      const asked = { uri: uri.toString() };
      const { note, coverage, definitions } = await this.#server.ask("twinlens/similarInFile", asked, {
        milliseconds: READING_MILLISECONDS,
      });
      this.#noted.fire(note ?? coverage);
      return definitions
        .filter(({ matches }) => matches.length > 0)
        .map((definition) => ({ kind: "definition", uri, definition }));
    } catch (error) {
      this.#noted.fire(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  dispose(): void {
    clearTimeout(this.#pause);
    this.#subscriptions.dispose();
    this.#changed.dispose();
    this.#noted.dispose();
  }
}

function definitionItem({ uri, definition }: DefinitionNode): vscode.TreeItem {
  const item = new vscode.TreeItem(definition.name, vscode.TreeItemCollapsibleState.Collapsed);
  const best = definition.matches[0];
  item.id = `${uri}#${definition.name}`;
  item.description = best === undefined ? "" : `${best.name} (${best.model})`;
  item.iconPath = new vscode.ThemeIcon(definition.kind === "class" ? "symbol-class" : "symbol-method");
  item.contextValue = "definition";
  return item;
}

function matchItem(node: MatchNode): vscode.TreeItem {
  const { uri, definition, match } = node;
  const item = new vscode.TreeItem(match.name, vscode.TreeItemCollapsibleState.None);
  item.id = `${uri}#${definition.name}#${match.path}#${match.name}`;
  item.description = `${match.model} · ${scoresOf(match)}`;
  item.tooltip = new vscode.MarkdownString(details(match));
  item.iconPath = new vscode.ThemeIcon(match.inBoth ? "pass" : "circle-outline");
  item.contextValue = definition.kind === "class" ? "match" : "function-match";
  item.command = { command: "twinlens.view.openMatch", title: "Open Beside", arguments: [node] };
  return item;
}

function details(match: SimilarClass): string {
  return [
    `**${match.name}** of ${match.model}`,
    scoresOf(match),
    match.twins.length > 0 ? `The same in ${match.twins.map((twin) => twin.split("::")[0]).join(", ")}` : undefined,
    match.ancestors.length > 0 ? `Inherits from ${match.ancestors.join(", ")}` : undefined,
  ]
    .filter((line) => line !== undefined)
    .join("\n\n");
}
