import { describe, expect, it } from "vitest";
import type { SkippedTest, SkippingModel } from "../../extension/src/protocol";
import {
  filterDescription,
  modelDescription,
  NOT_RUN,
  pairsByState,
  type SkipState,
  shownModels,
  shownTests,
  testDescription,
} from "../../extension/src/skip-text";

const EMBEDS: SkippedTest = {
  name: "test_inputs_embeds",
  origin: "common",
  path: "/c/tests/test_modeling_common.py",
  line: 12,
  skipped: 133,
  mixed: 10,
  models: 369,
  states: [
    { state: "skipped", models: 133 },
    { state: "mixed", models: 10 },
    { state: "conditional", models: 226 },
  ],
};
const FORWARD: SkippedTest = {
  ...EMBEDS,
  name: "test_forward",
  skipped: 0,
  mixed: 0,
  states: [{ state: "runs", models: 369 }],
};

function model(state: SkipState, ...classes: [SkippingModel["classes"][number]["state"], string][]): SkippingModel {
  return {
    model: "clip",
    state,
    classes: classes.map(([of, reason], n) => ({ name: `Clip${n}Test`, path: "/c/t.py", line: n, state: of, reason })),
  };
}

describe("the view Skipped Tests", () => {
  it("shows the share of the models that inherit a test and don't run it", () => {
    expect(testDescription(EMBEDS)).toBe("36.0 % · 133 of 369 · 10 in part");
    expect(testDescription(FORWARD)).toBe("0.0 % · 0 of 369");
    expect(testDescription({ ...FORWARD, models: 0 })).toBe("0.0 % · 0 of 0");
  });

  it("gives a model's reason where its classes give one", () => {
    expect(modelDescription(model("skipped", ["skipped", "no embeds"]))).toBe("skipped · no embeds");
    expect(modelDescription(model("skipped", ["skipped", "no embeds"], ["skipped", "none"]))).toBe("skipped");
    expect(modelDescription(model("skipped", ["skipped", ""]))).toBe("skipped");
    expect(modelDescription(model("mixed", ["skipped", "no embeds"], ["runs", ""]))).toBe(
      "mixed · 1 of 2 classes don't run it",
    );
  });

  it("leaves out what is in none of the chosen states", () => {
    expect(shownTests([EMBEDS, FORWARD], NOT_RUN)).toEqual([EMBEDS]);
    expect(shownTests([EMBEDS, FORWARD], new Set<SkipState>(["runs"]))).toEqual([FORWARD]);
    const models = [model("skipped"), model("gated")];
    expect(shownModels(models, new Set<SkipState>(["gated"]))).toEqual([models[1]]);
  });

  it("names the chosen states unless they are those of the start", () => {
    expect(filterDescription(NOT_RUN)).toBe("");
    expect(filterDescription(new Set<SkipState>(["gated", "runs"]))).toBe("gated, runs");
  });

  it("counts pairs of test and model", () => {
    expect(pairsByState([EMBEDS, EMBEDS, FORWARD]).get("skipped")).toBe(266);
    expect(pairsByState([EMBEDS, FORWARD]).get("runs")).toBe(369);
  });
});
