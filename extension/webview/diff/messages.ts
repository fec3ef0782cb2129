/** What passes between the diff page and the extension, and the shapes that twinlens/diffing writes for the page. */

/** A number that JSON may not carry comes by its name. */
export type JsonNumber = number | "NaN" | "Infinity" | "-Infinity" | null;

export type Verdict =
  | "agrees"
  | "inherited"
  | "originates here"
  | "children agree, parent differs"
  | "inputs already differ"
  | "only on padding"
  | "unpaired"
  | "not comparable";

/** One line of the table, as rows.py writes it: p parent, r and q paths, c call, v verdict, e error, h paired by. */
export interface Row {
  readonly p: number;
  readonly r: string | null;
  readonly q: string | null;
  readonly c: number;
  readonly v: Verdict;
  readonly e: JsonNumber;
  readonly h: string | null;
  readonly s: readonly number[] | null;
  readonly t: string | null;
  readonly k: string;
}

export interface Side {
  readonly path: string;
  readonly class: string;
  readonly dtype: string;
  readonly created: string;
  readonly calls: number;
}

export interface Table {
  readonly outcome: "agree" | "differ" | "inputs differ" | "not comparable";
  readonly reason: string;
  readonly notes: readonly string[];
  readonly reference: Side;
  readonly port: Side;
  readonly plot: readonly { readonly row: number; readonly error: JsonNumber }[];
  readonly rows: readonly Row[];
  readonly origins: readonly { readonly row: number; readonly code: string; readonly message: string }[];
}

export interface CallDetails {
  readonly paths: readonly string[];
  readonly class: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly seconds: number | null;
  readonly training: boolean | null;
  readonly error: string | null;
  readonly arguments: readonly { readonly name: string; readonly value: string }[];
  readonly attributes: Readonly<Record<string, string | number | boolean | null>>;
}

export interface TensorSide {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly mean: JsonNumber;
  readonly std: JsonNumber;
  readonly min: JsonNumber;
  readonly max: JsonNumber;
  readonly l2: JsonNumber;
  readonly nans: number;
  readonly infinities: number;
}

export interface TensorDetails {
  readonly side: "inputs" | "outputs";
  readonly place: string;
  readonly reference: TensorSide;
  readonly port: TensorSide;
  readonly permuted: boolean;
  readonly note: string;
  readonly error: {
    readonly relative: JsonNumber;
    readonly max_abs: JsonNumber;
    readonly index: readonly number[];
    readonly reference: JsonNumber;
    readonly port: JsonNumber;
    readonly cosine: JsonNumber;
    readonly mismatched: JsonNumber;
  };
}

export interface Cause {
  readonly code: string;
  readonly message: string;
  readonly residual: JsonNumber;
  readonly change: string;
  readonly reference: string;
  readonly port: string;
}

/** As details.py writes it. */
export interface Details {
  readonly reference: CallDetails | null;
  readonly port: CallDetails | null;
  readonly verdict: Verdict;
  readonly how: string | null;
  readonly note: string;
  readonly tensors: readonly TensorDetails[];
  readonly tokens: readonly JsonNumber[];
  readonly causes: readonly Cause[];
}

export interface Filters {
  readonly differs: boolean;
  readonly unpaired: boolean;
  readonly text: string;
}

/** What the page keeps over a reload of the window. */
export interface PageState {
  readonly reference: string;
  readonly port: string;
  readonly replay: boolean;
  readonly opened: readonly string[];
  readonly closed: readonly string[];
  readonly filters: Filters;
  readonly chosen: string | null;
}

export type ToPage =
  | { readonly kind: "table"; readonly traces: Traces; readonly table: Table; readonly kept: PageState | undefined }
  | { readonly kind: "details"; readonly row: number; readonly details: Details }
  | { readonly kind: "working"; readonly doing: string }
  | { readonly kind: "failed"; readonly sentence: string };

export interface Traces {
  readonly reference: string;
  readonly port: string;
  readonly replay: boolean;
}

export type ToHost =
  | { readonly kind: "ready" }
  | { readonly kind: "keep"; readonly state: PageState }
  | { readonly kind: "details"; readonly row: number }
  | { readonly kind: "source"; readonly file: string; readonly line: number }
  | { readonly kind: "pair"; readonly reference: string; readonly port: string; readonly apart: boolean }
  | { readonly kind: "jsonDiff" }
  | { readonly kind: "choose" }
  | { readonly kind: "replay"; readonly on: boolean };
