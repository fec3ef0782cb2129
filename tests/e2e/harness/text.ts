/** Words on the page, as Monaco lays them out: one element a visible line, blanks as no-break spaces. */

import { expect, type Locator, type Page } from "@playwright/test";

/** The visible line of the active editor that holds this text. */
export function lineWith(page: Page, text: string): Locator {
  return activeLines(page).filter({ hasText: text }).first();
}

function activeLines(page: Page): Locator {
  return page.locator(".editor-group-container.active .monaco-editor .view-lines .view-line");
}

/** Brings a line of the active editor into view by searching for its text, as a person would. */
export async function reveal(page: Page, text: string): Promise<void> {
  if ((await lineWith(page, text).count()) > 0) return;
  await page.locator(".editor-group-container.active .monaco-editor .view-lines").first().click();
  await page.keyboard.press("ControlOrMeta+f");
  const find = page.locator(".editor-group-container.active .find-widget.visible .find-part .input").first();
  await find.fill(text);
  await expect(page.locator(".editor-group-container.active .find-widget .matchesCount")).toHaveText(/^\d+ of \d+/);
  await page.keyboard.press("Escape");
  await expect(lineWith(page, text)).toBeVisible();
}

/** The middle of a word in a visible line, in pixels of the page. */
export async function middleOf(line: Locator, word: string): Promise<{ x: number; y: number }> {
  const middle = await line.evaluate((element, wanted) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const start = (node.textContent ?? "").replaceAll("\u00a0", " ").indexOf(wanted);
      if (start < 0) continue;
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, start + wanted.length);
      const box = range.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }
    return undefined;
  }, word);
  if (!middle)
    throw new Error(`The line ${JSON.stringify(await line.textContent())} has no word ${word} in one token.`);
  return middle;
}
