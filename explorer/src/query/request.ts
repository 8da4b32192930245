/** The query of the page: what is in the address, and the request that it makes. */
import type { Conditions, Id, TraceQuery } from "../api/types";
import { idText, parseId, placeOf, type Options } from "../router";

export interface QueryState {
  history: Id[];
  n: number;
  beam: number | null;
  candidates: number | null;
  keepSeen: boolean;
  deny: Id[];
  where: Conditions;
  /** The item that is asked about. */
  asked: Id | null;
}

const positive = (text: string | null): number | null => {
  const value = Number(text);
  return text && Number.isInteger(value) && value > 0 ? value : null;
};

export function readQuery(options: URLSearchParams): QueryState {
  let where: Conditions = {};
  try {
    const given: unknown = JSON.parse(options.get("where") ?? "{}");
    if (given && typeof given === "object" && !Array.isArray(given)) where = given as Conditions;
  } catch {
    // An address that someone wrote by hand.
  }
  const asked = options.get("why");
  return {
    history: options.getAll("h").map(parseId),
    n: positive(options.get("n")) ?? 10,
    beam: positive(options.get("beam")),
    candidates: positive(options.get("candidates")),
    keepSeen: options.get("seen") === "keep",
    deny: options.getAll("deny").map(parseId),
    where,
    asked: asked === null ? null : parseId(asked),
  };
}

export function queryPlace(state: QueryState): string {
  const options: Options = {
    h: state.history.map(idText),
    n: state.n === 10 ? null : state.n,
    beam: state.beam,
    candidates: state.candidates,
    seen: state.keepSeen ? "keep" : null,
    deny: state.deny.map(idText),
    where: Object.keys(state.where).length > 0 ? JSON.stringify(state.where) : null,
    why: state.asked === null ? null : idText(state.asked),
  };
  return placeOf("query", "", options);
}

export function requestOf(state: QueryState): TraceQuery {
  const request: TraceQuery = { history: state.history, n: state.n, exclude_seen: !state.keepSeen };
  if (state.candidates !== null) request.candidates = state.candidates;
  else if (state.beam !== null) request.beam = state.beam;
  if (state.deny.length > 0) request.deny = state.deny;
  if (Object.keys(state.where).length > 0) request.where = state.where;
  return request;
}

/** The same query with the model's own beam and nothing filtered, to compare with; null if it is the same. */
export function plainRequest(state: QueryState): TraceQuery | null {
  const plain: TraceQuery = { history: state.history, n: state.n, exclude_seen: true };
  return JSON.stringify(asPlain(plain)) === JSON.stringify(asPlain(requestOf(state))) ? null : plain;
}

const asPlain = (request: TraceQuery): unknown => ({ ...request, history: request.history.map(String), deny: request.deny?.map(String) });

/** What someone types as a condition: a number, `2..5` for a range, or text; commas separate alternatives. */
export function readCondition(text: string): unknown {
  const range = /^\s*(-?[\d.]+)?\s*\.\.\s*(-?[\d.]+)?\s*$/.exec(text);
  if (range && (range[1] || range[2])) {
    return { ...(range[1] ? { min: Number(range[1]) } : {}), ...(range[2] ? { max: Number(range[2]) } : {}) };
  }
  const values = text.split(",").map((one) => one.trim()).filter(Boolean).map(readValue);
  return values.length === 1 ? values[0] : values;
}

function readValue(text: string): unknown {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

export function conditionText(condition: unknown): string {
  if (condition && typeof condition === "object" && !Array.isArray(condition)) {
    const { min, max } = condition as { min?: number; max?: number };
    return min === undefined ? `at most ${max}` : max === undefined ? `at least ${min}` : `${min} to ${max}`;
  }
  return Array.isArray(condition) ? condition.join(" or ") : String(condition);
}
