/** What the view Skipped Tests says, apart from VS Code. */

import type { SkippedTest, SkippingModel } from "./protocol";

export type SkipState = SkippingModel["state"];

export const STATES: Readonly<Record<SkipState, { readonly icon: string; readonly meaning: string }>> = {
  skipped: { icon: "circle-slash", meaning: "by a decorator, or as the first thing the test does" },
  disabled: { icon: "eye-closed", meaning: "by a flag of the class" },
  shadowed: { icon: "trash", meaning: "hidden by an assignment: the test does not exist" },
  empty: { icon: "dash", meaning: "the method does nothing, and passes" },
  vacuous: { icon: "circle-large-outline", meaning: "loops over an empty list of classes, and passes" },
  phantom: { icon: "warning", meaning: "collected, but no test" },
  mixed: { icon: "split-horizontal", meaning: "run by some classes of the model only" },
  conditional: { icon: "question", meaning: "may skip itself when it runs" },
  gated: { icon: "lock", meaning: "needs hardware, a package or a switch" },
  runs: { icon: "pass", meaning: "always" },
};

/** What the view shows unless a person chooses otherwise: whatever keeps a test from running. */
export const NOT_RUN: ReadonlySet<SkipState> = new Set([
  "skipped",
  "disabled",
  "shadowed",
  "empty",
  "vacuous",
  "phantom",
  "mixed",
]);

export function shownTests(tests: readonly SkippedTest[], states: ReadonlySet<SkipState>): SkippedTest[] {
  return tests.filter((test) => test.states.some(({ state }) => states.has(state)));
}

export function shownModels(models: readonly SkippingModel[], states: ReadonlySet<SkipState>): SkippingModel[] {
  return models.filter(({ state }) => states.has(state));
}

export function testDescription({ skipped, models, mixed }: SkippedTest): string {
  const share = models === 0 ? 0 : (100 * skipped) / models;
  const counts = `${share.toFixed(1)} % · ${skipped} of ${models}`;
  return mixed === 0 ? counts : `${counts} · ${mixed} in part`;
}

export function testTooltip(test: SkippedTest): string {
  const counts = test.states.map(({ state, models }) => `- ${models} ${state}`);
  return [`**${test.name}** (${test.origin}), by models:`, "", ...counts].join("\n");
}

/** A model's state: with its reason where its classes give one, with their number where they differ. */
export function modelDescription({ state, classes }: SkippingModel): string {
  if (state === "mixed") {
    const without = classes.filter((cls) => NOT_RUN.has(cls.state)).length;
    return `mixed · ${without} of ${classes.length} classes don't run it`;
  }
  const reasons = new Set(classes.filter((cls) => cls.state === state).map(({ reason }) => reason));
  const [reason] = reasons;
  return reasons.size === 1 && reason ? `${state} · ${reason}` : state;
}

export function filterDescription(states: ReadonlySet<SkipState>): string {
  const isDefault = states.size === NOT_RUN.size && [...states].every((state) => NOT_RUN.has(state));
  return isDefault ? "" : [...states].join(", ");
}

/** How many pairs of test and model are in each state. */
export function pairsByState(tests: readonly SkippedTest[]): Map<SkipState, number> {
  const pairs = new Map<SkipState, number>();
  for (const { states } of tests) {
    for (const { state, models } of states) {
      pairs.set(state, (pairs.get(state) ?? 0) + models);
    }
  }
  return pairs;
}
