/** The view Traces: what `.twinlens/traces` of the workspace holds, the newest first. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { TraceEntry } from "./protocol";
import type { Server } from "./server";
import { traceDescription, traceLabel, traceTooltip } from "./trace-text";

const PAUSE_MILLISECONDS = 300;
const FILES = ".twinlens/traces/**";

const ICONS: Record<TraceEntry["status"], vscode.ThemeIcon> = {
  complete: new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed")),
  raised: new vscode.ThemeIcon("error", new vscode.ThemeColor("testing.iconFailed")),
  unfinished: new vscode.ThemeIcon("circle-slash"),
  unreadable: new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground")),
};

export class TracesTree implements vscode.TreeDataProvider<TraceEntry>, vscode.Disposable {
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #following: vscode.Disposable;
  #shown: readonly TraceEntry[] | undefined;
  #asking: Promise<readonly TraceEntry[]> | undefined;
  #pause: NodeJS.Timeout | undefined;
  readonly onDidChangeTreeData = this.#changed.event;

  constructor(server: Server) {
    this.#server = server;
    const watcher = vscode.workspace.createFileSystemWatcher(`**/${FILES}`, false, true, false);
    this.#following = vscode.Disposable.from(
      watcher,
      watcher.onDidCreate(() => this.#listSoon()),
      watcher.onDidDelete(() => this.#listSoon()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.#listSoon()),
      server.onDidChangeState(() => this.#listSoon()),
    );
  }

  /** The traces as they are listed. */
  async traces(): Promise<readonly TraceEntry[]> {
    return this.#shown ?? (await (this.#asking ?? this.list()));
  }

  /** Draws every row anew, with its age of now. */
  async refresh(): Promise<void> {
    await this.list();
    this.#changed.fire(undefined);
  }

  /** Lists anew, and answers the trace in `folder`. */
  async reload(folder: string): Promise<TraceEntry | undefined> {
    return (await this.list()).find((entry) => entry.folder === folder);
  }

  async getChildren(entry?: TraceEntry): Promise<TraceEntry[]> {
    return entry === undefined ? [...(await this.traces())] : [];
  }

  /** `reveal` needs it; every trace is at the top. */
  getParent(): undefined {
    return undefined;
  }

  getTreeItem(entry: TraceEntry): vscode.TreeItem {
    const item = new vscode.TreeItem(traceLabel(entry), vscode.TreeItemCollapsibleState.None);
    item.id = entry.folder;
    item.description = traceDescription(entry, new Date());
    item.tooltip = new vscode.MarkdownString(traceTooltip(entry), true);
    item.iconPath = ICONS[entry.status];
    item.contextValue = entry.summary === null ? "trace" : "summarisedTrace";
    item.accessibilityInformation = {
      label: `${traceLabel(entry)}, ${entry.status}, ${traceDescription(entry, new Date())}`,
    };
    if (entry.summary !== null) {
      item.command = { command: "twinlens.traces.openSummary", title: "Open Summary", arguments: [entry] };
    }
    return item;
  }

  /**
   * Asks for the list anew. While rows are drawn, VS Code knows none of them, and an item chosen in a row's menu would
   * miss its trace: the answer is fetched first, and nothing is drawn where it is what stands there.
   */
  async list(): Promise<readonly TraceEntry[]> {
    const asking = this.#ask();
    this.#asking = asking;
    const traces = await asking;
    if (this.#asking === asking && !isDeepStrictEqual(traces, this.#shown)) {
      this.#shown = traces;
      this.#changed.fire(undefined);
    }
    return traces;
  }

  async #ask(): Promise<readonly TraceEntry[]> {
    if (this.#server.state.kind !== "running") {
      return [];
    }
    const { traces } = await this.#server.ask("twinlens/traces", {});
    return traces;
  }

  #listSoon(): void {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => void this.list().catch(showFailure), PAUSE_MILLISECONDS);
  }

  dispose(): void {
    clearTimeout(this.#pause);
    this.#following.dispose();
    this.#changed.dispose();
  }
}
