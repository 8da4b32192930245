/** Numbers and names as text. */
import type { NamedItem } from "./api/types";

const whole = new Intl.NumberFormat("en");

export const count = (value: number): string => whole.format(Math.round(value)).replace("-", "−");

/** A count with its noun: `1 item`, `12 items`. */
export const counted = (value: number, noun: string, plural = `${noun}s`): string =>
  `${count(value)} ${value === 1 ? noun : plural}`;

/** 1,234 or 12.3k or 4.5M: for labels in charts. */
export function short(value: number): string {
  if (value < 10_000) return count(value);
  if (value < 999_500) return `${trim(value / 1e3)}k`;
  return value < 999.5e6 ? `${trim(value / 1e6)}M` : `${trim(value / 1e9)}B`;
}

const trim = (value: number): string => (value < 99.95 ? value.toFixed(1) : count(value));

export const decimal = (value: number, digits = 1): string =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");

/** A share as a percentage, with as many digits as it needs. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0 || value >= 9.95) return `${Math.round(value)}%`;
  if (value >= 0.095) return `${value.toFixed(1)}%`;
  return value < 0.00095 ? `${value.toExponential(0).replace("e-", "·10⁻").replace(/⁻(\d+)/, (_, n: string) => `⁻${raised(n)}`)}%` : `${value.toPrecision(1)}%`;
}

const raised = (digits: string): string => [...digits].map((one) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)]).join("");

export const nameOf = (item: NamedItem): string => item.title ?? String(item.id);

export const pathText = (nodes: readonly number[]): string => nodes.join("-");

export function plainValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(plainValue).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  return value === null || value === undefined ? "–" : String(value).replace(/(\S)\|(?=\S)/g, "$1, ");
}

/** `entropy_share` as `Entropy share`. */
export const humane = (name: string): string => {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};

/** Seconds since 1970 as a date and a time of this place. */
export const timeOf = (seconds: number): string => new Date(seconds * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium", hour12: false });
