/** The view Skipped Tests: the common tests by how many models don't run them, and under each the models. */

import * as vscode from "vscode";
import type { SkippedTest, SkippingClass, SkippingModel } from "./protocol";
import type { Server } from "./server";
import {
  filterDescription,
  modelDescription,
  NOT_RUN,
  pairsByState,
  type SkipState,
  STATES,
  shownModels,
  shownTests,
  testDescription,
  testTooltip,
} from "./skip-text";

const VIEW = "twinlens.skippedTests";
const PAUSE_MILLISECONDS = 400;
/** The first scan of a whole checkout takes seconds, more on a busy machine. */
const SCAN_MILLISECONDS = 120_000;

interface TestNode {
  readonly kind: "test";
  readonly test: SkippedTest;
}

interface ModelNode {
  readonly kind: "model";
  readonly test: SkippedTest;
  readonly model: SkippingModel;
}

interface ClassNode {
  readonly kind: "class";
  readonly test: SkippedTest;
  readonly model: SkippingModel;
  readonly cls: SkippingClass;
}

type Node = TestNode | ModelNode | ClassNode;

export function registerSkippedTestsView(server: Server): vscode.Disposable {
  const tree = new SkippedTestsTree(server);
  const view = vscode.window.createTreeView(VIEW, { treeDataProvider: tree, showCollapseAll: true });
  tree.onNote((note) => {
    view.message = note ?? "";
  });
  return vscode.Disposable.from(
    tree,
    view,
    vscode.commands.registerCommand("twinlens.openSkipPlace", open),
    vscode.commands.registerCommand("twinlens.filterSkippedTests", async () => {
      await tree.chooseStates();
      view.description = filterDescription(tree.states);
    }),
  );
}

async function open(path: string, line: number): Promise<void> {
  const start = new vscode.Position(line - 1, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(path), { selection: new vscode.Range(start, start) });
}

class SkippedTestsTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #noted = new vscode.EventEmitter<string | undefined>();
  readonly #subscriptions: vscode.Disposable;
  #pause: NodeJS.Timeout | undefined;
  #tests: readonly SkippedTest[] = [];
  #states: ReadonlySet<SkipState> = NOT_RUN;
  readonly onDidChangeTreeData = this.#changed.event;
  readonly onNote = this.#noted.event;

  constructor(server: Server) {
    this.#server = server;
    this.#subscriptions = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#followDocument(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.#followDocument(document)),
      server.onDidChangeState(() => this.#refresh()),
      server.onNotification("twinlens/skipsChanged", () => this.#refresh()),
    );
  }

  get states(): ReadonlySet<SkipState> {
    return this.#states;
  }

  /** Asks which states to show; nothing changes where the question is dismissed. */
  async chooseStates(): Promise<void> {
    const pairs = pairsByState(this.#tests);
    const items = (Object.keys(STATES) as SkipState[]).map((state) => ({
      label: state,
      description: `${pairs.get(state) ?? 0}`,
      detail: STATES[state].meaning,
      picked: this.#states.has(state),
      state,
    }));
    const picked = await vscode.window.showQuickPick(items, {
      title: "Show tests and models that are",
      canPickMany: true,
    });
    if (picked !== undefined) {
      this.#states = picked.length === 0 ? NOT_RUN : new Set(picked.map(({ state }) => state));
      this.#changed.fire(undefined);
    }
  }

  async getChildren(node?: Node): Promise<Node[]> {
    switch (node?.kind) {
      case undefined:
        return this.#topLevel();
      case "test":
        return this.#modelsOf(node.test);
      case "model":
        return node.model.classes.length < 2 ? [] : node.model.classes.map((cls) => ({ ...node, kind: "class", cls }));
      case "class":
        return [];
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "test":
        return testItem(node.test);
      case "model":
        return modelItem(node);
      case "class":
        return classItem(node);
    }
  }

  async #topLevel(): Promise<Node[]> {
    if (this.#server.state.kind !== "running") {
      this.#noted.fire("The Twinlens server is not running.");
      return [];
    }
    try {
      const { note, tests } = await this.#server.ask("twinlens/skippedTests", {}, { milliseconds: SCAN_MILLISECONDS });
      this.#tests = tests;
      const shown = shownTests(tests, this.#states);
      this.#noted.fire(note ?? (shown.length === 0 ? "No test is in the chosen states." : undefined));
      return shown.map((test) => ({ kind: "test", test }));
    } catch (error) {
      this.#noted.fire(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  async #modelsOf(test: SkippedTest): Promise<Node[]> {
    try {
      const { models } = await this.#server.ask("twinlens/skippingModels", { test: test.name });
      return shownModels(models, this.#states).map((model) => ({ kind: "model", test, model }));
    } catch (error) {
      this.#noted.fire(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  #followDocument(document: vscode.TextDocument): void {
    if (document.languageId === "python" && /[\\/]tests[\\/]/.test(document.uri.fsPath)) {
      this.#refresh();
    }
  }

  #refresh(): void {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#changed.fire(undefined), PAUSE_MILLISECONDS);
  }

  dispose(): void {
    clearTimeout(this.#pause);
    this.#subscriptions.dispose();
    this.#changed.dispose();
    this.#noted.dispose();
  }
}

function testItem(test: SkippedTest): vscode.TreeItem {
  const item = new vscode.TreeItem(test.name, vscode.TreeItemCollapsibleState.Collapsed);
  item.id = test.name;
  item.description = testDescription(test);
  item.tooltip = new vscode.MarkdownString(testTooltip(test));
  item.contextValue = "test";
  item.command = opening(test.path, test.line);
  return item;
}

function modelItem({ test, model }: ModelNode): vscode.TreeItem {
  const several = model.classes.length > 1;
  const collapsed = several ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None;
  const item = new vscode.TreeItem(model.model, collapsed);
  item.id = `${test.name}#${model.model}`;
  item.description = modelDescription(model);
  item.tooltip = `${model.model}: ${STATES[model.state].meaning}`;
  item.iconPath = new vscode.ThemeIcon(STATES[model.state].icon);
  const decides = model.classes.find(({ state }) => state === model.state) ?? model.classes[0];
  if (decides !== undefined) {
    item.command = opening(decides.path, decides.line);
  }
  return item;
}

function classItem({ test, model, cls }: ClassNode): vscode.TreeItem {
  const item = new vscode.TreeItem(cls.name, vscode.TreeItemCollapsibleState.None);
  item.id = `${test.name}#${model.model}#${cls.name}`;
  item.description = cls.reason === "" ? cls.state : `${cls.state} · ${cls.reason}`;
  item.tooltip = `${cls.name}: ${STATES[cls.state].meaning}`;
  item.iconPath = new vscode.ThemeIcon(STATES[cls.state].icon);
  item.command = opening(cls.path, cls.line);
  return item;
}

function opening(path: string, line: number): vscode.Command {
  return { command: "twinlens.openSkipPlace", title: "Open", arguments: [path, line] };
}
