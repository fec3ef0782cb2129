// Written by scripts/write_protocol_ts.py from server/twinlens/lsp/protocol.py: change that file instead.

import type { Position } from "vscode-languageclient";

/**
 * What the client says about itself at `initialize`. Empty strings and missing fields mean the server's defaults.
 *
 * `interpreter` is the Python that has the user's packages, `cache_dir` a folder for the index. `trusted` is false in
 * Restricted Mode: then nothing of the workspace may be run.
 */
export interface InitializationOptions {
  readonly interpreter?: string;
  readonly cacheDir?: string;
  readonly trusted?: boolean;
}

/** The params of a request that needs none, and the result of one that answers none. */
export type Nothing = Record<string, never>;

/** The place of a class's or function's name in a document. */
export interface SimilarClassesParams {
  readonly uri: string;
  readonly position: Position;
}

/**
 * One entry of a ranking: a definition of the library. `path` is absolute, `line` counts from 1.
 *
 * `embedding` is null while only the Jaccard index is there. `in_both`: it stands in both top fives.
 */
export interface SimilarClass {
  readonly model: string;
  readonly name: string;
  readonly path: string;
  readonly line: number;
  readonly score: number;
  readonly embedding: number | null;
  readonly jaccard: number;
  readonly inBoth: boolean;
  readonly twins: readonly string[];
  readonly ancestors: readonly string[];
}

/** `definition` is null where the place names no definition of the document. `note` says what the list lacks. */
export interface SimilarClassesResult {
  readonly definition: string | null;
  readonly note: string | null;
  readonly matches: readonly SimilarClass[];
}

/** How the index over the library stands. `remedy` is the one command that adds what is missing. */
export interface IndexStatus {
  readonly state: "starting" | "building" | "ready" | "jaccard-only" | "failed" | "stopped";
  readonly percent: number | null;
  readonly definitions: number;
  readonly library: string | null;
  readonly message: string;
  readonly remedy: string | null;
}

/** A document whose definitions are to be compared. */
export interface SimilarInFileParams {
  readonly uri: string;
}

/** A definition of the document and what resembles it; `line` counts from 1. */
export interface SimilarDefinition {
  readonly name: string;
  readonly kind: "class" | "function";
  readonly line: number;
  readonly matches: readonly SimilarClass[];
}

/** `note` says what the answer lacks, or why there is none; `coverage` which models the file resembles most. */
export interface SimilarInFileResult {
  readonly note: string | null;
  readonly coverage: string;
  readonly definitions: readonly SimilarDefinition[];
}

/** A definition of a file; `normalised`: with the model's own name replaced by `Model`. */
export interface ClassTextParams {
  readonly uri: string;
  readonly name: string;
  readonly normalised: boolean;
}

/** The definition's source. */
export interface ClassTextResult {
  readonly text: string;
}

/** A class of the library, as a `SimilarClass` names it. */
export interface LibraryClass {
  readonly model: string;
  readonly name: string;
  readonly path: string;
}

/** Have the class `name` of the document inherit from `parent` in the modular file beside it. */
export interface InheritParams {
  readonly uri: string;
  readonly name: string;
  readonly parent: LibraryClass;
}

/** The modular file's path and whole new text; `notes` are sentences to read before relying on it. */
export interface InheritResult {
  readonly path: string;
  readonly text: string;
  readonly notes: readonly string[];
}

/**
 * Run one forward of `name`, a class or a recipe of the file `uri`, and record it.
 *
 * `id` is the client's, and stands in what is said while it runs. `recipe` is another target to run instead, as a
 * `RecipeEntry` has it. `only`: keep values of modules of these classes or paths alone.
 */
export interface TraceParams {
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly recipe?: string;
  readonly dtype?: string;
  readonly statsOnly?: boolean;
  readonly only?: readonly string[];
}

/**
 * A trace of the workspace. `name` is its folder's, `created` UTC in ISO 8601, `summary` a file's path.
 *
 * `status`: `complete`, `raised`, `unfinished` or `unreadable`; `error` says more of the second and the last.
 */
export interface TraceEntry {
  readonly folder: string;
  readonly name: string;
  readonly className: string;
  readonly target: string;
  readonly dtype: string;
  readonly created: string;
  readonly seconds: number | null;
  readonly bytes: number;
  readonly status: "complete" | "raised" | "unfinished" | "unreadable";
  readonly error: string;
  readonly summary: string | null;
}

/**
 * How it went. `folder` and `trace` are null where no trace came of it.
 *
 * `status`: `complete`, or `raised` by the forward (the trace is there up to that call), `failed` before it
 * (`traceback` tells more where the user's code raised), `no recipe` for the class, `no torch` in the interpreter.
 * `message` is the sentence to show for all but the first.
 */
export interface TraceResult {
  readonly status: "complete" | "raised" | "failed" | "no recipe" | "no torch";
  readonly message: string;
  readonly traceback: string;
  readonly trace: TraceEntry | null;
}

/** `detail` is what is being prepared, or the module path that runs, with `count` calls before it. */
export interface TraceProgress {
  readonly id: string;
  readonly detail: string;
  readonly count: number | null;
}

/** What the process that traces printed. */
export interface TraceOutput {
  readonly text: string;
}

/** The traces of all folders of the workspace, the newest first. */
export interface TraceList {
  readonly traces: readonly TraceEntry[];
}

/** The file whose workspace's recipes are asked for. */
export interface RecipesParams {
  readonly uri: string;
}

/** A recipe; `recipe` is what `TraceParams` takes, `target` the class that it says it is for, or empty. */
export interface RecipeEntry {
  readonly name: string;
  readonly recipe: string;
  readonly target: string;
  readonly path: string;
  readonly line: number;
}

/** `folder` is where the workspace's recipes are, or would be. */
export interface RecipeList {
  readonly folder: string;
  readonly recipes: readonly RecipeEntry[];
}

/** A class of a file. */
export interface RecipeTemplateParams {
  readonly uri: string;
  readonly name: string;
}

/** A new recipe: the path of a file that does not exist yet, and its text. */
export interface RecipeTemplate {
  readonly path: string;
  readonly text: string;
}

/** A key of a `register_patch_mapping` call in a document. */
export interface PatchMatchesParams {
  readonly uri: string;
  readonly key: string;
}

/** A class that a key matches. `path` is absolute, `line` counts from 1. */
export interface PatchedClass {
  readonly name: string;
  readonly path: string;
  readonly line: number;
}

/** The module classes that a key matches, by name. */
export interface PatchMatchesResult {
  readonly classes: readonly PatchedClass[];
}

/** Asks where it is decided that a test (in all models), or the tests of a class of the document, don't run. */
export interface SkipPlacesParams {
  readonly uri: string;
  readonly test: string | null;
  readonly className: string | null;
}

/** A line, counted from 1, that keeps a test of a class from running. `path` is absolute. */
export interface SkipPlace {
  readonly path: string;
  readonly line: number;
  readonly model: string;
  readonly className: string;
  readonly test: string;
  readonly state: "runs" | "conditional" | "gated" | "skipped" | "disabled" | "shadowed" | "empty" | "vacuous" | "phantom" | "mixed";
  readonly reason: string;
}

/** The places, each once. */
export interface SkipPlacesResult {
  readonly places: readonly SkipPlace[];
}

/** How many models are in one state. */
export interface SkipStateCount {
  readonly state: "runs" | "conditional" | "gated" | "skipped" | "disabled" | "shadowed" | "empty" | "vacuous" | "phantom" | "mixed";
  readonly models: number;
}

/** A common test: `skipped` of the `models` that inherit it don't run it, `mixed` more only in some classes. */
export interface SkippedTest {
  readonly name: string;
  readonly origin: string;
  readonly path: string;
  readonly line: number;
  readonly skipped: number;
  readonly mixed: number;
  readonly models: number;
  readonly states: readonly SkipStateCount[];
}

/** The common tests of the workspace's checkout, the least run first. `note` says why there are none. */
export interface SkippedTestsResult {
  readonly note: string | null;
  readonly tests: readonly SkippedTest[];
}

/** Asks what becomes of a common test in each model. */
export interface SkippingModelsParams {
  readonly test: string;
}

/** A class that inherits the test, with the line, counted from 1, that decides. `path` is absolute. */
export interface SkippingClass {
  readonly name: string;
  readonly path: string;
  readonly line: number;
  readonly state: "runs" | "conditional" | "gated" | "skipped" | "disabled" | "shadowed" | "empty" | "vacuous" | "phantom" | "mixed";
  readonly reason: string;
}

/** A model with the classes that inherit the test. */
export interface SkippingModel {
  readonly model: string;
  readonly state: "runs" | "conditional" | "gated" | "skipped" | "disabled" | "shadowed" | "empty" | "vacuous" | "phantom" | "mixed";
  readonly classes: readonly SkippingClass[];
}

/** The models that inherit the test, by name. */
export interface SkippingModelsResult {
  readonly models: readonly SkippingModel[];
}

/**
 * Compares two traces (folders or summary files) and keeps the diff open as `id`; one that is open is replaced.
 *
 * `rtol` is a relative error of the user's own, below 0 for the noise floor of the dtype. `replay` runs the port
 * again, each of its modules on the reference's inputs; both traces must say what they were made from.
 */
export interface DiffOpenParams {
  readonly id: string;
  readonly reference: string;
  readonly port: string;
  readonly rtol?: number;
  readonly replay?: boolean;
}

/** `table` is a JSON file with all that the page shows at first; `map` the file that holds pairs made by hand. */
export interface DiffOpened {
  readonly table: string;
  readonly map: string;
  readonly outcome: "agree" | "differ" | "inputs differ" | "not comparable";
  readonly reason: string;
}

/** Asks for all that is known of one row of an open diff. */
export interface DiffRowParams {
  readonly id: string;
  readonly row: number;
}

/** `json` is what twinlens/diffing/details.py says of a row; the page reads it. */
export interface DiffDetails {
  readonly json: string;
}

/** Two module paths to pair by hand, or to take apart. The diff stays as it was until it is opened again. */
export interface DiffPairParams {
  readonly id: string;
  readonly reference: string;
  readonly port: string;
  readonly apart?: boolean;
}

/** An open diff. */
export interface DiffId {
  readonly id: string;
}

/** Two JSON files for a text diff: paired modules under one name, numbers that agree alike. */
export interface DiffSummaries {
  readonly reference: string;
  readonly port: string;
}

export interface Requests {
  "twinlens/similarClasses": { params: SimilarClassesParams; result: SimilarClassesResult };
  "twinlens/similarInFile": { params: SimilarInFileParams; result: SimilarInFileResult };
  "twinlens/classText": { params: ClassTextParams; result: ClassTextResult };
  "twinlens/inherit": { params: InheritParams; result: InheritResult };
  "twinlens/rebuildIndex": { params: Nothing; result: Nothing };
  "twinlens/skipPlaces": { params: SkipPlacesParams; result: SkipPlacesResult };
  "twinlens/skippedTests": { params: Nothing; result: SkippedTestsResult };
  "twinlens/skippingModels": { params: SkippingModelsParams; result: SkippingModelsResult };
  "twinlens/trace": { params: TraceParams; result: TraceResult };
  "twinlens/traces": { params: Nothing; result: TraceList };
  "twinlens/recipes": { params: RecipesParams; result: RecipeList };
  "twinlens/recipeTemplate": { params: RecipeTemplateParams; result: RecipeTemplate };
  "twinlens/patchMatches": { params: PatchMatchesParams; result: PatchMatchesResult };
  "twinlens/diffOpen": { params: DiffOpenParams; result: DiffOpened };
  "twinlens/diffRow": { params: DiffRowParams; result: DiffDetails };
  "twinlens/diffPair": { params: DiffPairParams; result: Nothing };
  "twinlens/diffSummaries": { params: DiffId; result: DiffSummaries };
  "twinlens/diffClose": { params: DiffId; result: Nothing };
}

export interface Notifications {
  "twinlens/indexStatus": IndexStatus;
  "twinlens/skipsChanged": Nothing;
  "twinlens/traceProgress": TraceProgress;
  "twinlens/traceOutput": TraceOutput;
}
