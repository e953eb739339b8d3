/** Why a text is not the JSON that a service may read. */
export type JsonFault = 'encoding' | 'syntax' | 'duplicate' | 'nesting';

/** How many arrays and objects may lie in each other. Nothing that is read here has more than ten. */
export const MAX_NESTING = 64;

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The result of {@link readJson}: the value, or the fault. */
type JsonReading = { ok: true; value: unknown } | { ok: false; fault: JsonFault };

/**
 * Reads JSON as RFC 8725 §2.4 and RFC 8259 §4 would have it read where two readers must agree: UTF-8 without
 * exceptions, and no object that names a member twice (`JSON.parse` keeps the last, others the first). Values nested
 * deeper than {@link MAX_NESTING} never reach the parser: 256 KiB of brackets would take it 20 ms (THREATS.md 47).
 *
 * @param input text, or bytes that should be UTF-8
 * @param tooDeep what to do about deeper values. `refuse` (the default) is the fault `nesting`. `null` reads each of
 *   them as null, so that a schema can name the member that holds one.
 */
export function readJson(input: string | Uint8Array, tooDeep: 'refuse' | 'null' = 'refuse'): JsonReading {
  let text: string;
  try {
    text = typeof input === 'string' ? input : UTF_8.decode(input);
  } catch {
    return { ok: false, fault: 'encoding' };
  }
  const shallow = withoutDeepValues(text);
  if (tooDeep === 'refuse' && shallow !== text) return { ok: false, fault: 'nesting' };
  let value: unknown;
  try {
    value = JSON.parse(shallow);
  } catch {
    return { ok: false, fault: 'syntax' };
  }
  return namesAMemberTwice(shallow) ? { ok: false, fault: 'duplicate' } : { ok: true, value };
}

/** Puts null in place of each value that is nested too deep, in one pass over a text that need not be JSON. */
function withoutDeepValues(text: string): string {
  let kept = '';
  let keptUpTo = 0;
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(text, index);
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1;
      if (depth === MAX_NESTING + 1) kept += `${text.slice(keptUpTo, index)}null`;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      if (depth === MAX_NESTING + 1) keptUpTo = index + 1;
      depth -= 1;
    }
  }
  if (kept === '') return text;
  return depth > MAX_NESTING ? kept : kept + text.slice(keptUpTo);
}

/** The index of the quote that ends a string, or of the text's end. A quote behind an odd number of backslashes does not. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Whether some object in a valid text names a member twice, however the names are spelled. */
function namesAMemberTwice(json: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  for (const [found, colon] of json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    if (found === '{' || found === '[') open.push(undefined);
    else if (found === '}' || found === ']') open.pop();
    else if (colon !== undefined) {
      const names = open.pop() ?? new Set();
      open.push(names);
      const name: string = JSON.parse(found.slice(0, -colon.length));
      if (names.has(name)) return true;
      names.add(name);
    }
  }
  return false;
}

/** An object without its members that are null: many programs write null for what is absent. Those of inner objects stay. */
export function withoutNulls(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
