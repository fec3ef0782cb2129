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

/** `note` says what the answer lacks, or why there is none. */
export interface SimilarInFileResult {
  readonly note: string | null;
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

export interface Requests {
  "twinlens/similarClasses": { params: SimilarClassesParams; result: SimilarClassesResult };
  "twinlens/similarInFile": { params: SimilarInFileParams; result: SimilarInFileResult };
  "twinlens/classText": { params: ClassTextParams; result: ClassTextResult };
  "twinlens/inherit": { params: InheritParams; result: InheritResult };
  "twinlens/rebuildIndex": { params: Nothing; result: Nothing };
}

export interface Notifications {
  "twinlens/indexStatus": IndexStatus;
}
