/** The one handle that VS Code gives to a page. */

import type { PageState, ToHost } from "./messages";

interface VsCodeApi {
  postMessage(message: ToHost): void;
  getState(): PageState | undefined;
  setState(state: PageState): void;
}

declare function acquireVsCodeApi(): VsCodeApi;

export const vscode = acquireVsCodeApi();
