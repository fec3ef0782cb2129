/** Trace with…: which recipe, what to keep, which dtype. */

import * as vscode from "vscode";
import type { RecipeEntry } from "./protocol";
import type { Server } from "./server";
import type { TraceChoice } from "./trace-run";

interface RecipeItem extends vscode.QuickPickItem {
  readonly recipe?: string;
  readonly isNew?: boolean;
}

interface ChoiceItem extends vscode.QuickPickItem {
  readonly choice: TraceChoice;
}

const DTYPES = ["float32", "bfloat16", "float16", "float64"];

/** What was chosen; `"new recipe"` where the person wants to write one, undefined where they left. */
export async function chooseTrace(
  server: Server,
  uri: string,
  name: string,
): Promise<TraceChoice | "new recipe" | undefined> {
  const { recipes } = await server.ask("twinlens/recipes", { uri });
  const source = await pick(recipeItems(recipes, name), `Trace ${name}: from which recipe? (1 of 3)`);
  if (source === undefined) {
    return undefined;
  }
  if (source.isNew) {
    return "new recipe";
  }
  const kept = await pick(keepItems(name), `Trace ${name}: what to keep? (2 of 3)`);
  const dtype = kept && (await pick(dtypeItems(), `Trace ${name}: in which dtype? (3 of 3)`));
  return (
    dtype && { ...(source.recipe === undefined ? {} : { recipe: source.recipe }), ...kept.choice, ...dtype.choice }
  );
}

function pick<T extends vscode.QuickPickItem>(items: readonly T[], title: string): Thenable<T | undefined> {
  return vscode.window.showQuickPick(items, { title, matchOnDescription: true, ignoreFocusOut: true });
}

/** Those for the class first. */
export function recipeItems(recipes: readonly RecipeEntry[], name: string): RecipeItem[] {
  const own = recipes.filter(({ target }) => target.endsWith(name));
  const others = recipes.filter((recipe) => !own.includes(recipe));
  return [
    { label: "$(wand) Automatic", description: "its recipe, else a small model made from its config" },
    ...[...own, ...others].map(({ name: label, target, recipe }) => ({
      label: `$(beaker) ${label}`,
      description: target === "" ? "" : `for ${target}`,
      recipe,
    })),
    { label: "$(new-file) New recipe…", description: `a template for ${name}`, isNew: true },
  ];
}

function keepItems(name: string): ChoiceItem[] {
  return [
    { label: "All values", description: "every tensor, packed in one file", choice: {} },
    {
      label: `Values of ${name}`,
      description: "and of what it calls; statistics of the rest",
      choice: { only: [name] },
    },
    { label: "Statistics only", description: "small, for a large model", choice: { statsOnly: true } },
  ];
}

function dtypeItems(): ChoiceItem[] {
  return [
    { label: "As the recipe has it", choice: {} },
    ...DTYPES.map((dtype) => ({ label: dtype, choice: { dtype } })),
  ];
}
