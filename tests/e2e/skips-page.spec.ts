import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, type Page, test } from "@playwright/test";
import { checkout, samples, venvPython } from "../../scripts/lib/paths.mjs";

const SCAN = "from twinlens.cli import main; main()";
const CELL = { size: 9, left: 190, top: 24 };

let folder: string;

test.beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "twinlens-page-"));
  const scan = ["scan-skips", "--root", join(samples, "checkout"), "--output_dir", folder];
  const env = { ...process.env, XDG_CACHE_HOME: folder };
  await promisify(execFile)(venvPython, ["-c", SCAN, ...scan, "--html", join(folder, "page.html")], { env });
});

test.afterAll(() => rm(folder, { recursive: true, force: true }));

/** The colour of a cell of the heat map, counted from 0. */
function colourAt(page: Page, column: number, row: number): Promise<string> {
  return page.locator("canvas").evaluate(
    (canvas: HTMLCanvasElement, { x, y }) => {
      const scale = window.devicePixelRatio;
      const pixel = canvas.getContext("2d")?.getImageData(x * scale, y * scale, 1, 1).data;
      return `rgba(${pixel?.join(", ")})`;
    },
    { x: CELL.left + (column + 0.5) * CELL.size - 1, y: CELL.top + (row + 0.5) * CELL.size - 1 },
  );
}

for (const scheme of ["light", "dark"] as const) {
  test(`the page of a scan sorts, filters, and maps models against tests in colours (${scheme})`, async ({ page }) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`file://${join(folder, "page.html")}`);
    const tests = page.locator("#rows tr td:first-child");
    await expect(tests.first()).toHaveText("test_prompt_lookup_decoding");
    for (const width of [420, 900, 1200, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    }

    await page.getByRole("button", { name: "Test", exact: true }).click();
    await expect(tests.first()).toHaveText("test_assisted_decoding");
    await page.getByRole("searchbox").fill("signature");
    await expect(tests).toHaveText(["test_signature"]);

    // Of test_signature: aster skips it, birch's override is empty, cedar differs by class, hazel does not inherit it.
    const colours = await Promise.all([0, 1, 2, 3, 6].map((row) => colourAt(page, 0, row)));
    expect(new Set(colours).size).toBe(5);
    expect(colours).not.toContain("rgba(0, 0, 0, 255)");
    expect(colours[4]).toBe("rgba(0, 0, 0, 0)");
    await page.locator("canvas").hover({ position: { x: CELL.left + 4, y: CELL.top + CELL.size + 4 } });
    await expect(page.locator("aside")).toContainText("birch: empty");
    await expect(page.locator("aside")).toContainText("the method does nothing");
    expect(errors).toEqual([]);
    await page.getByRole("searchbox").fill("");
    await page.screenshot({
      path: join(checkout, "test-results/screenshots", `skips-page-${scheme}.png`),
      fullPage: true,
    });
  });
}
