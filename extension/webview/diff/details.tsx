/** All that is known of one row: cause, sources, numbers of both sides, tokens, arguments, and pairing by hand. */

import type { CallDetails, Cause, Details, Row, TensorDetails, TensorSide } from "./messages";
import { height, sentence, shownError, shownNumber } from "./model";
import { vscode } from "./vscode-api";

interface Props {
  readonly row: Row;
  readonly details: Details | undefined;
  /** The unpaired module that waits for its partner. */
  readonly partner: string | undefined;
  readonly onPartner: (id: string | undefined) => void;
}

export function DetailsPane({ row, details, partner, onPartner }: Props) {
  const name = row.q ?? row.r ?? "";
  return (
    <section class="details" aria-label={`Details of ${name}`}>
      <h2>{name}</h2>
      <p>
        {row.v}
        {row.h === null ? "" : `, paired by ${row.h}`}
        {details?.note ? `: ${details.note}` : ""}
      </p>
      <Pairing row={row} partner={partner} onPartner={onPartner} />
      {details === undefined ? (
        <p role="status">Reading…</p>
      ) : (
        <>
          {details.causes.map((cause) => (
            <CauseBox key={cause.code + cause.message} cause={cause} />
          ))}
          <Source side="Reference" call={details.reference} />
          <Source side="Port" call={details.port} />
          <Numbers tensors={details.tensors} />
          <Tokens tokens={details.tokens} />
          <Arguments reference={details.reference} port={details.port} />
        </>
      )}
    </section>
  );
}

function CauseBox({ cause }: { readonly cause: Cause }) {
  return (
    <div class="cause">
      <h3>
        <code>{cause.code}</code>
      </h3>
      <p>{sentence(cause.message)}.</p>
      {typeof cause.residual === "number" && cause.code !== "unknown" && (
        <p class="proof">Put right, a relative error of {shownError(cause.residual)} is left.</p>
      )}
      {cause.change !== "" && <p>{cause.change}</p>}
    </div>
  );
}

function Source({ side, call }: { readonly side: string; readonly call: CallDetails | null }) {
  if (call === null) return null;
  const { file, line } = call;
  return (
    <p>
      {side}: <code>{call.class}</code>{" "}
      {file !== null && line !== null && (
        <button type="button" class="link" onClick={() => vscode.postMessage({ kind: "source", file, line })}>
          {file.split(/[\\/]/).at(-1)}:{line}
        </button>
      )}
      {call.training === true && " in training mode"}
      {call.error !== null && <strong> {call.error}</strong>}
    </p>
  );
}

const STATISTICS = ["mean", "std", "min", "max"] as const;

function Numbers({ tensors }: { readonly tensors: readonly TensorDetails[] }) {
  if (tensors.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scrolls" aria-label="Tensors" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Tensor</th>
            {STATISTICS.map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {tensors.map((tensor) => (
          <Numerals key={`${tensor.side}${tensor.place}`} tensor={tensor} />
        ))}
      </table>
      {tensors.map((tensor) => (
        <Worst key={`${tensor.side}${tensor.place}`} tensor={tensor} />
      ))}
    </section>
  );
}

/** One tensor: what it is, and a line for each side; a single one where the sides are equal. */
function Numerals({ tensor }: { readonly tensor: TensorDetails }) {
  const { reference, port, error } = tensor;
  const kinds = [...new Set([kindOf(reference), kindOf(port)])];
  const sides = error.relative === 0 ? { both: reference } : { reference, port };
  return (
    <tbody>
      <tr class="tensor">
        <th scope="rowgroup" colSpan={1 + STATISTICS.length}>
          {tensor.side} {tensor.place} {kinds.join(" against ")}, error {shownError(error.relative)}
        </th>
      </tr>
      {Object.entries(sides).map(([side, own]) => (
        <tr key={side}>
          <th scope="row">{side}</th>
          {STATISTICS.map((name) => (
            <td key={name} class="number">
              {shownNumber(own[name])}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}

function kindOf({ shape, dtype, nans, infinities }: TensorSide): string {
  const strange = [nans > 0 && `${nans} NaN`, infinities > 0 && `${infinities} Inf`].filter(Boolean).join(", ");
  return `[${shape.join(", ")}] ${dtype}${strange === "" ? "" : ` with ${strange}`}`;
}

function Worst({ tensor }: { readonly tensor: TensorDetails }) {
  const { error } = tensor;
  if (error.index.length === 0 || error.relative === 0) return null;
  return (
    <p>
      {tensor.side} {tensor.place}: worst at [{error.index.join(", ")}]: {shownNumber(error.reference)} in the
      reference, {shownNumber(error.port)} in the port; cosine {shownNumber(error.cosine)}
      {tensor.permuted ? "; columns in the order that the weights say" : ""}
    </p>
  );
}

function Tokens({ tokens }: Pick<Details, "tokens">) {
  if (tokens.length < 2) return null;
  const differing = tokens.filter((error) => height(error) > 0.4).length;
  return (
    <svg
      class="tokens"
      role="img"
      aria-label={`Error of each of ${tokens.length} tokens; ${differing} differ by more than 0.01 %`}
      viewBox={`0 0 ${tokens.length} 1`}
      preserveAspectRatio="none"
    >
      {tokens.map((error, place) => (
        <rect key={place} x={place} y={1 - height(error)} width={0.9} height={height(error)}>
          <title>{`token ${place}: ${shownError(error)}`}</title>
        </rect>
      ))}
    </svg>
  );
}

function Arguments({ reference, port }: Pick<Details, "reference" | "port">) {
  return (
    <details>
      <summary>Arguments and attributes</summary>
      {[reference, port].map(
        (call, place) =>
          call !== null && (
            <dl key={place === 0 ? "reference" : "port"}>
              {call.arguments.map(({ name, value }) => [
                <dt key={`${name}n`}>{name}</dt>,
                <dd key={`${name}v`}>{value}</dd>,
              ])}
              {Object.entries(call.attributes).map(([name, value]) => [
                <dt key={`${name}n`}>self.{name}</dt>,
                <dd key={`${name}v`}>{String(value)}</dd>,
              ])}
            </dl>
          ),
      )}
    </details>
  );
}

function Pairing({ row, partner, onPartner }: Omit<Props, "details">) {
  const { r: reference, q: port } = row;
  if (reference !== null && port !== null) {
    return (
      <button
        type="button"
        onClick={() =>
          vscode.postMessage({ kind: "pair", reference, port: port.split(" + ")[0] as string, apart: true })
        }
      >
        Take apart
      </button>
    );
  }
  const own = JSON.stringify({ reference, port });
  const other =
    partner === undefined ? undefined : (JSON.parse(partner) as { reference: string | null; port: string | null });
  const pair = { reference: reference ?? other?.reference ?? null, port: port ?? other?.port ?? null };
  if (other !== undefined && partner !== own && pair.reference !== null && pair.port !== null) {
    const { reference: ours, port: theirs } = pair as { reference: string; port: string };
    return (
      <button
        type="button"
        onClick={() => {
          onPartner(undefined);
          vscode.postMessage({ kind: "pair", reference: ours, port: theirs, apart: false });
        }}
      >
        Pair with {reference === null ? ours : theirs}
      </button>
    );
  }
  return (
    <button type="button" aria-pressed={partner === own} onClick={() => onPartner(partner === own ? undefined : own)}>
      {partner === own ? "Now choose its partner" : "Pair with…"}
    </button>
  );
}
