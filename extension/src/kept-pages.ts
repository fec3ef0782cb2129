/** What the diff pages showed. VS Code stores a page's state within a minute, in a browser too late for a reload; what an extension stores is safe at once. */

import type { Memento } from "vscode";
import type { PageState } from "../webview/diff/messages";

const KEY = "twinlens.diff.pages";
const MOST = 8;

/** Stores what a page shows now, as the newest. */
export async function keepPage(storage: Memento, state: PageState): Promise<void> {
  const others = all(storage).filter((other) => !areOfSameTraces(other, state));
  await storage.update(KEY, [state, ...others].slice(0, MOST));
}

/** The newest that is known of the page that VS Code restores with `state`, which may be old or lost. */
export function keptPage(storage: Memento, state: PageState | undefined): PageState | undefined {
  const pages = all(storage);
  return state === undefined ? pages[0] : (pages.find((page) => areOfSameTraces(page, state)) ?? state);
}

function all(storage: Memento): readonly PageState[] {
  return storage.get<readonly PageState[]>(KEY, []);
}

function areOfSameTraces(page: PageState, other: PageState): boolean {
  return page.reference === other.reference && page.port === other.port;
}
