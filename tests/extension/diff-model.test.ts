import { describe, expect, it } from "vitest";
import type { Row, Table, Verdict } from "../../extension/webview/diff/messages";
import { type Choice, type Line, Model, ownName, rowId, shownError } from "../../extension/webview/diff/model";

const SIDE = { path: "", class: "Net", dtype: "float32", created: "", calls: 0 };
const NOTHING: Choice = {
  opened: new Set(),
  closed: new Set(),
  filters: { differs: false, unpaired: false, text: "" },
};

function row(p: number, name: string, v: Verdict = "agrees", k = "Block"): Row {
  return {
    p,
    r: `A.${name}`,
    q: `B.${name}`,
    c: 0,
    v,
    e: v === "agrees" ? 0 : 0.5,
    h: "path",
    s: [2, 3],
    t: "float32",
    k,
  };
}

/** A root with `count` layers of two modules each; in layer `faulty` the first is the origin. */
function table(count: number, faulty: number): Table {
  const rows: Row[] = [row(-1, "net", "inherited", "Net")];
  let origin = -1;
  for (let layer = 0; layer < count; layer++) {
    const isAfter = layer >= faulty;
    const parent = rows.push(row(0, `layers.${layer}`, isAfter ? "inherited" : "agrees")) - 1;
    if (layer === faulty) origin = rows.length;
    rows.push(
      row(
        parent,
        `layers.${layer}.attn`,
        layer === faulty ? "originates here" : isAfter ? "inherited" : "agrees",
        "Attn",
      ),
    );
    rows.push(row(parent, `layers.${layer}.mlp`, isAfter ? "inherited" : "agrees", "Mlp"));
  }
  const origins = [{ row: origin, code: "eps", message: "" }];
  return { outcome: "differ", reason: "", notes: [], reference: SIDE, port: SIDE, plot: [], rows, origins };
}

function names(model: Model, lines: readonly Line[]): string[] {
  return lines.map((line) => (line.kind === "fold" ? `${line.count} layers` : (model.row(line.row).r ?? "")));
}

describe("the lines of a diff", () => {
  it("begin open down to the origin, with quiet layers folded into one", () => {
    const model = new Model(table(6, 4));
    expect(names(model, model.lines(NOTHING))).toEqual([
      "A.net",
      "4 layers",
      "A.layers.4",
      "A.layers.4.attn",
      "A.layers.4.mlp",
      "A.layers.5",
    ]);
  });

  it("show every layer of a fold that is opened", () => {
    const model = new Model(table(6, 4));
    const fold = model.lines(NOTHING).find((line) => line.kind === "fold");
    const lines = model.lines({ ...NOTHING, opened: new Set([fold?.id ?? ""]) });
    expect(names(model, lines).slice(0, 5)).toEqual(["A.net", "A.layers.0", "A.layers.1", "A.layers.2", "A.layers.3"]);
  });

  it("show what passes a filter and the way to it", () => {
    const model = new Model(table(6, 4));
    const lines = model.lines({ ...NOTHING, filters: { differs: false, unpaired: false, text: "originates" } });
    expect(names(model, lines)).toEqual(["A.net", "A.layers.4", "A.layers.4.attn"]);
  });

  it("tell a screen reader where each stands among its siblings", () => {
    const model = new Model(table(6, 4));
    const attn = model.lines(NOTHING)[3];
    expect(attn).toMatchObject({ level: 3, place: 1, siblings: 2 });
  });

  it("are made of 100,000 rows without a line for each", () => {
    const model = new Model(table(33_333, 33_000));
    expect(model.table.rows.length).toBe(100_000);
    expect(model.lines(NOTHING).length).toBeLessThan(400);
  });

  it("are found again by both paths and the number of the call", () => {
    const model = new Model(table(2, 1));
    expect(model.rowOf(rowId(model.row(4)))).toBe(4);
  });
});

describe("words of the table", () => {
  it("show an error with two digits, and what is no number by its name", () => {
    expect([0, 0.0312, "Infinity", "NaN", null].map((value) => shownError(value as number))).toEqual([
      "0",
      "3.1e-2",
      "∞",
      "NaN",
      "",
    ]);
  });

  it("leave the parent's path out, and join what stands for one module", () => {
    expect(ownName("A.layers.0.attn", "A.layers.0")).toBe("attn");
    expect(ownName("A.x.q + A.x.k", "A.x")).toBe("q + k");
    expect(ownName(null, "A")).toBe("");
  });
});
