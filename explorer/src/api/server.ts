/** Asks the server that sent this page. */
import { parseJson, toJson } from "./json";
import { AskError, type Answer, type Ask, type Question, type Source } from "./source";
import { token } from "./token";
import type { ErrorAnswer } from "./types";

interface Request {
  method: "GET" | "POST";
  url: string;
  body?: string;
}

/** Behind a proxy the server may have a prefix: everything before the page's own name. */
const root = location.pathname.replace(/\/explore(\/.*)?$/, "");

function get(path: string, options: object): Request {
  const given = Object.entries(options as Record<string, unknown>).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return { method: "GET", url: `/v1/explore/${path}${query ? `?${query}` : ""}` };
}

const post = (path: string, body: object): Request => ({ method: "POST", url: `/v1/explore/${path}`, body: toJson(body) });

const REQUESTS: { [Q in Question]: (ask: Ask<Q>) => Request } = {
  status: () => get("status", {}),
  overview: () => get("overview", {}),
  paths: (ask) => get("paths", ask),
  node: ({ node, ...rest }) => get(`nodes/${node}`, rest),
  path: ({ path, ...rest }) => get(`paths/${encodeURIComponent(path)}`, rest),
  items: (ask) => get("items", ask),
  item: ({ id, ...rest }) => get(`items/${encodeURIComponent(id)}`, rest),
  query: (ask) => post("query", ask),
  why: (ask) => post("why", ask),
  replay: (ask) => get("replay", ask),
  compare: (ask) => get("compare", ask),
};

export class ServerSource implements Source {
  readonly isFile = false;
  readonly recorded = [];

  async ask<Q extends Question>(question: Q, ask: Ask<Q>, signal?: AbortSignal): Promise<Answer<Q>> {
    const { method, url, body } = REQUESTS[question](ask);
    // A browser takes them for folders, also if they are encoded.
    if (/\/\.{1,2}$/.test(url)) throw new AskError("failed", "A browser cannot ask for an item with this id.", "Use pathdex inspect RUN --item ID.");
    const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
    const secret = token();
    if (secret) headers["Authorization"] = `Bearer ${secret}`;
    let response: Response;
    let text: string;
    try {
      response = await fetch(root + url, {
        method,
        headers,
        cache: "no-store",
        credentials: "same-origin",
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
      });
      text = await response.text();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new AskError("offline", "The server does not answer.", "Check that it still runs, then try again.");
    }
    if (response.ok) return parseJson(text) as Answer<Q>;
    throw problem(response.status, text, response.headers.has("Retry-After"));
  }
}

function problem(status: number, text: string, comesLater: boolean): AskError {
  let message = `The server answered with status ${status}.`;
  let remedy: string | undefined;
  try {
    const { error } = JSON.parse(text) as ErrorAnswer;
    message = error.message;
    remedy = error.remedy ?? undefined;
  } catch {
    // Not the server's own error, but one of a proxy.
  }
  if (remedy && message.endsWith(`; ${remedy}`)) message = message.slice(0, -remedy.length - 2);
  const kind = status === 401 ? "unauthorised" : status === 404 ? "missing" : comesLater ? "busy" : "failed";
  return new AskError(kind, message, remedy);
}
