/** JSON whose integers beyond 2^53 survive: ids of items may be any 64-bit integer. */

const LONG_INTEGER = /[[:,\s]-?\d{16,}/;

type Context = { source?: string } | undefined;
const parse = JSON.parse as (text: string, revive: (key: string, value: unknown, context?: Context) => unknown) => unknown;
const raw = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON;

export function parseJson(text: string): unknown {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  return parse(text, (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context?.source && /^-?\d+$/.test(context.source)
      ? BigInt(context.source)
      : value,
  );
}

export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "bigint" ? (raw ? raw(one.toString()) : Number(one)) : one,
  );
}
