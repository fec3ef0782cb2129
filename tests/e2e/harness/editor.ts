/** VS Code as a person sees it: its windows and lists by what one does with them. */

import { basename, isAbsolute, join } from "node:path";
import { expect, type FrameLocator, type Locator, type Page } from "@playwright/test";
import { writeSettings } from "../../../scripts/editor/settings.mjs";
import { checkout } from "../../../scripts/lib/paths.mjs";
import { readLogs } from "./logs";
import { lineWith, middleOf, reveal } from "./text";

export type Theme = "dark" | "light" | "high contrast" | "high contrast light";
export type Settings = Readonly<Record<string, unknown>>;

/** What the operating system tells of its colours, and the class that VS Code then sets. */
const THEMES: Record<Theme, { readonly media: Parameters<Page["emulateMedia"]>[0]; readonly cssClass: string }> = {
  dark: { media: { colorScheme: "dark", forcedColors: "none" }, cssClass: "vs-dark" },
  light: { media: { colorScheme: "light", forcedColors: "none" }, cssClass: "vs" },
  "high contrast": { media: { colorScheme: "dark", forcedColors: "active" }, cssClass: "hc-black" },
  "high contrast light": { media: { colorScheme: "light", forcedColors: "active" }, cssClass: "hc-light" },
};

export class Editor {
  readonly page: Page;
  /** The workspace folder on disk, which this test may change. */
  readonly folder: string;
  readonly #userData: string;
  #settings: Settings;

  constructor(page: Page, folder: string, userData: string, settings: Settings) {
    this.page = page;
    this.folder = folder;
    this.#userData = userData;
    this.#settings = settings;
  }

  /** Loads the page and waits until the workbench stands. */
  async open(url: string): Promise<void> {
    await this.page.goto(url);
    await expect(this.page.locator(".monaco-workbench .part.statusbar")).toBeVisible({ timeout: 60_000 });
    await expect(this.page.locator(".explorer-folders-view .monaco-list-row").first()).toBeVisible({ timeout: 30_000 });
  }

  /** Waits until our extension's `activate` has been called in the extension host. */
  async extensionIsActive(): Promise<void> {
    await expect
      .poll(() => readLogs(this.#userData, /^remoteexthost\.log$/), { timeout: 60_000 })
      .toContain("ExtensionService#_doActivateExtension twinlens.twinlens");
  }

  /** Opens a file in the active group: a path inside the workspace, or an absolute one. */
  async openFile(path: string): Promise<void> {
    const absolute = isAbsolute(path) ? path : join(this.folder, path);
    await this.page.keyboard.press("ControlOrMeta+p");
    await this.quickInput.fill(absolute);
    const row = this.quickRow(basename(path));
    await this.#click(row);
    await expect(this.tab(basename(path))).toHaveAttribute("aria-selected", "true");
    await expect(this.page.locator(".editor-group-container.active .view-lines .view-line").first()).toBeVisible();
  }

  /** The tab of an open file; its attribute `aria-selected` says whether it is the one in front. */
  tab(name: string): Locator {
    return this.page
      .locator(".tabs-container .tab")
      .filter({ has: this.page.getByText(name, { exact: true }) })
      .first();
  }

  /** Runs a command of the palette by its full title, such as `Twinlens: Restart Server`. */
  async runCommand(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.quickInput.fill(`>${title}`);
    const row = this.quickRow(title);
    await this.#click(row);
  }

  /** Picks the row of the open quick pick with exactly this label. */
  async pick(label: string): Promise<void> {
    await this.#click(this.quickRow(label));
  }

  async #click(row: Locator): Promise<void> {
    await expect(row).toBeVisible();
    // A row that comes under a pointer at rest shows its description in a tip, which covers the row below.
    await this.#movePointerAway();
    await row.click();
  }

  /** To an empty place of the status bar, whatever lies over it. */
  async #movePointerAway(): Promise<void> {
    const bar = await this.page.locator(".part.statusbar").boundingBox();
    if (bar === null) throw new Error("VS Code shows no status bar.");
    await this.page.mouse.move(bar.x + 300, bar.y + bar.height / 2);
  }

  /** The input box of the palette, of a quick pick, or of a question. */
  get quickInput(): Locator {
    return this.page.locator(".quick-input-widget:visible .quick-input-box input");
  }

  /** All rows of the open quick pick. */
  get quickRows(): Locator {
    return this.page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row");
  }

  /** The row of the open quick pick with exactly this label. */
  quickRow(label: string): Locator {
    return this.quickRows.filter({ has: this.page.locator(".label-name").getByText(label, { exact: true }) }).first();
  }

  /** Chooses an item of the context menu of what is pointed at. */
  async chooseFromContextMenu(target: Locator, title: string): Promise<void> {
    await target.click({ button: "right" });
    const item = this.page.getByRole("menuitem", { name: title, exact: true });
    // A menu takes no click in its first tenth of a second, lest the right click's own release choose; it takes a key.
    await item.hover();
    await expect(item).toBeFocused();
    await this.page.keyboard.press("Enter");
    await expect(item).toHaveCount(0);
  }

  /** Puts the cursor at a line and column, both counted from 1, as the status bar shows them. */
  async goTo(line: number, column = 1): Promise<void> {
    await this.page.keyboard.press("ControlOrMeta+g");
    await this.quickInput.fill(`:${line}:${column}`);
    await this.page.keyboard.press("Enter");
    await expect(this.page.locator("#status\\.editor\\.selection")).toContainText(`Ln ${line}, Col ${column}`);
  }

  /** The line of the active editor that holds this text, scrolled into view. */
  async line(text: string): Promise<Locator> {
    await reveal(this.page, text);
    return lineWith(this.page, text);
  }

  /** Puts the cursor on a word, in the line that holds `inLine`. */
  async clickWord(word: string, inLine = word): Promise<void> {
    const { x, y } = await middleOf(await this.line(inLine), word);
    await this.page.mouse.click(x, y);
  }

  /**
   * Rests the pointer on a word, in the line that holds `inLine`, and answers the hover that opens. VS Code asks once
   * each time the pointer comes to rest: where lenses move the line just then, or the server still starts, nothing
   * opens, and the pointer has to come again.
   */
  async hoverWord(word: string, inLine = word): Promise<Locator> {
    await expect(async () => {
      const line = await this.line(inLine);
      // A hover that is open does not ask again: leave first.
      await this.#movePointerAway();
      await expect(this.hover).toHaveCount(0);
      const { x, y } = await middleOf(line, word);
      await this.page.mouse.move(x - 1, y);
      await this.page.mouse.move(x, y);
      await expect(this.hover.first()).toBeVisible({ timeout: 3_000 });
    }).toPass({ timeout: 30_000 });
    return this.hover.first();
  }

  /** The hovers that are open. */
  get hover(): Locator {
    return this.page.locator(".monaco-hover:visible").filter({ hasNotText: /^$/ });
  }

  /** The code lenses whose text holds this. */
  codeLens(text: string | RegExp): Locator {
    return this.page.locator(".editor-group-container.active .codelens-decoration a").filter({ hasText: text });
  }

  /** Opens the Problems view and answers its rows, of files and of problems. */
  async problems(): Promise<Locator> {
    await this.runCommand("Problems: Focus on Problems View");
    return this.page.locator(".markers-panel-container .monaco-list-row");
  }

  /** The notifications that hold this text. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notification-list-item").filter({ hasText: text });
  }

  /** An entry of the status bar by its text. */
  statusBarItem(text: string | RegExp): Locator {
    return this.page.locator(".part.statusbar .statusbar-item").filter({ hasText: text });
  }

  /** The page inside the webview in front; ordinary locators work in it. */
  get webview(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  /** Replaces the whole text of the active editor by pasting, which adds no brackets or indents of its own. Unsaved. */
  async replaceText(text: string): Promise<void> {
    await this.page.locator(".editor-group-container.active .monaco-editor .view-lines").first().click();
    await this.page.keyboard.press("ControlOrMeta+a");
    await this.page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await this.page.keyboard.press("ControlOrMeta+v");
    await expect(this.#unsaved).toHaveCount(1);
  }

  /** Saves the active editor, whose text was changed. */
  async save(): Promise<void> {
    await expect(this.#unsaved).toHaveCount(1);
    await this.page.keyboard.press("ControlOrMeta+s");
    await expect(this.#unsaved).toHaveCount(0);
  }

  get #unsaved(): Locator {
    return this.page.locator(".editor-group-container.active .tab.active.dirty");
  }

  /** Adds to the user settings; VS Code takes them up while it runs. */
  async updateSettings(settings: Settings): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    await writeSettings(this.#userData, this.#settings);
  }

  /** Changes the colours of the operating system, which VS Code follows, and waits until they show. */
  async setTheme(theme: Theme): Promise<void> {
    const { media, cssClass } = THEMES[theme];
    await this.page.emulateMedia(media);
    await expect(this.page.locator(`.monaco-workbench.${cssClass}`)).toBeVisible();
  }

  /** What Twinlens wrote into its output channels so far. */
  logs(): Promise<string> {
    return readLogs(this.#userData, /twinlens/i);
  }

  /** Saves what is on the screen as `test-results/screenshots/NAME.png`. */
  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(checkout, "test-results", "screenshots", `${name}.png`) });
  }
}
