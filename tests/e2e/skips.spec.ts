import { join } from "node:path";
import { samples } from "../../scripts/lib/paths.mjs";
import { type Editor, expect, test } from "./harness";

const COMMON = "tests/test_modeling_common.py";
const BIRCH = "tests/models/birch/test_modeling_birch.py";
const DAHLIA = "tests/models/dahlia/test_modeling_dahlia.py";
const ELM = "tests/models/elm/test_modeling_elm.py";
const IVY = "tests/models/ivy/test_modeling_ivy.py";

test.use({ workspace: join(samples, "checkout") });

/** The rows of the view Skipped Tests, opened and waited for. */
async function skippedTests(editor: Editor) {
  await editor.runCommand("Twinlens: Focus on Skipped Tests View");
  const rows = editor.page.locator(".pane", { hasText: "Skipped Tests" }).locator(".monaco-list-row");
  await expect(rows.first()).toContainText("%", { timeout: 30_000 });
  return rows;
}

test("above every common test stands who does not run it, and a click peeks at the places", async ({ editor }) => {
  await editor.openFile(COMMON);
  await editor.line("def test_hidden_states_output");
  const lens = editor.codeLens("not run by 1 of 7 models (14.3 %)").filter({ visible: true }).first();
  await expect(lens).toBeVisible({ timeout: 30_000 });
  await editor.setTheme("dark");
  await editor.screenshot("skips-lens-common-dark");
  await editor.setTheme("light");
  await editor.screenshot("skips-lens-common-light");
  await lens.click();
  const peek = editor.page.locator(".peekview-widget");
  await peek.locator(".monaco-list-row").filter({ hasText: "test_modeling_aster.py" }).click();
  const place = peek.locator(".monaco-list-row").filter({ hasText: "Aster doesn't keep its hidden states" });
  await place.click();
  await expect(peek.locator(".view-lines")).toContainText("def test_hidden_states_output");
  await editor.screenshot("skips-peek");
});

test("a class, its overrides and its flags tell what they keep from running, and the pointer tells why", async ({
  editor,
}) => {
  await editor.openFile(BIRCH);
  await editor.line("class BirchModelTest");
  await expect(editor.codeLens("13 of 21 common tests don't run: 5 disabled")).toBeVisible({ timeout: 30_000 });
  await expect(editor.codeLens("keeps 2 common tests from running").first()).toBeVisible();
  await expect(editor.codeLens("shadowed here · not run by 2 of 7 models (28.6 %)").first()).toBeVisible();
  await editor.screenshot("skips-lens-model");
  const onClass = await editor.hoverWord("BirchModelTest", "class BirchModelTest");
  await expect(onClass).toContainText("has_attentions = False (Model does not output attentions)");
  await editor.screenshot("skips-hover-class");

  await editor.openFile(COMMON);
  await editor.line("def test_attention_outputs");
  const onTest = await editor.hoverWord("test_attention_outputs", "def test_attention_outputs");
  await expect(onTest).toContainText("more run it in some of their classes only");
  await editor.line("def test_signature");
  const onSignature = await editor.hoverWord("test_signature", "def test_signature");
  await expect(onSignature.getByRole("row").filter({ hasText: "Aster's forward takes anything" })).toBeVisible();
  await editor.screenshot("skips-hover-test");
});

test("lenses and problems follow what is typed, before it is saved", async ({ editor }) => {
  await editor.openFile(IVY);
  await editor.line("class IvyModelTest");
  await expect(editor.codeLens("5 of 21 common tests don't run")).toBeVisible({ timeout: 30_000 });
  await editor.line("test_inputs_embeds");
  await editor.clickWord("unittest", "@unittest.skip");
  await editor.page.keyboard.press("ControlOrMeta+End");
  await editor.page.keyboard.type("\n    has_attentions = False\n");
  await editor.line("class IvyModelTest");
  await expect(editor.codeLens("7 of 21 common tests don't run")).toBeVisible();
  await editor.screenshot("skips-typed");
});

test("a dead skip is removed and decorators are put in order by quick fixes", async ({ editor }) => {
  await editor.openFile(ELM);
  const problems = await editor.problems();
  await expect(problems.filter({ hasText: "ElmModelTest inherits no test_save_and_load" })).toBeVisible({
    timeout: 30_000,
  });
  await editor.screenshot("skips-problems");
  await editor.clickWord("test_save_and_load");
  await quickFix(editor, "Remove the skip of test_save_and_load");
  await expect(editor.page.locator(".view-lines")).not.toContainText("Elm was renamed");
  await expect(problems.filter({ hasText: "test_save_and_load" })).toHaveCount(0);

  await editor.openFile(DAHLIA);
  await editor.clickWord("unittest", '@unittest.skip("This decorates None")');
  await expect(problems.filter({ hasText: "decorates None" })).toBeVisible();
  await quickFix(editor, "Move @unittest.skip below @parameterized.expand");
  await expect(problems.filter({ hasText: "decorates None" })).toHaveCount(0);
  await editor.line("This decorates None");
  await editor.screenshot("skips-order-fixed");
});

test("the view lists tests by how many models don't run them, filters by state and opens the place", async ({
  editor,
}) => {
  await editor.openFile(COMMON);
  const rows = await skippedTests(editor);
  await expect(rows.first()).toContainText("100.0 %");
  const embeds = rows.filter({ hasText: "test_inputs_embeds" });
  await expect(embeds).toContainText("28.6 % · 2 of 7 · 1 in part");
  await embeds.locator(".monaco-tl-twistie").click();
  const ivy = rows.filter({ hasText: "ivy" });
  await expect(ivy).toContainText("skipped");
  await editor.setTheme("dark");
  await editor.screenshot("skips-view-dark");
  await editor.setTheme("light");
  await editor.screenshot("skips-view-light");
  await rows.filter({ hasText: "aster" }).click();
  await expect(editor.tab("test_modeling_aster.py")).toHaveAttribute("aria-selected", "true");
  await expect(editor.page.locator("#status\\.editor\\.selection")).toContainText("Ln 36,");

  await editor.runCommand("Twinlens: Filter Skipped Tests by State");
  await expect(editor.quickRows.filter({ hasText: "shadowed" })).toContainText("hidden by an assignment");
  await editor.screenshot("skips-filter");
  for (const state of ["skipped", "disabled", "empty", "vacuous", "phantom", "mixed"]) {
    await editor.pick(state);
  }
  await editor.page.keyboard.press("Enter");
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("test_save_load");
  await editor.screenshot("skips-filtered");
});

test.describe("a folder without a checkout", () => {
  test.use({ workspace: join(samples, "lumen") });

  test("is told what the view needs", async ({ editor }) => {
    await editor.openFile("modeling_lumen.py");
    await editor.runCommand("Twinlens: Focus on Skipped Tests View");
    const pane = editor.page.locator(".pane", { hasText: "Skipped Tests" });
    await expect(pane).toContainText("Open a transformers checkout to see which of its tests run.", {
      timeout: 30_000,
    });
    await editor.screenshot("skips-no-checkout");
  });
});

async function quickFix(editor: Editor, title: string): Promise<void> {
  await expect(async () => {
    await editor.page.keyboard.press("ControlOrMeta+.");
    await expect(editor.page.locator(".action-widget").getByText(title, { exact: true })).toBeVisible({
      timeout: 2_000,
    });
  }).toPass();
  await editor.page.locator(".action-widget").getByText(title, { exact: true }).click();
}
