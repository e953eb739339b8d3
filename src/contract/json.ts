/** Why a text is not the JSON that a service may read. */
export type JsonFault = 'encoding' | 'syntax' | 'duplicate';

/** What {@link readJson} found: the value, or why there is none. */
export type JsonReading = { ok: true; value: unknown } | { ok: false; fault: JsonFault };

/**
 * Reads JSON as RFC 8725 §2.4 and RFC 8259 §4 would have it read where two readers must agree: UTF-8 without
 * exceptions, and no object that names a member twice (`JSON.parse` keeps the last, others the first).
 *
 * @param input text, or bytes that should be UTF-8
 */
export function readJson(input: string | Uint8Array): JsonReading {
  let text: string;
  try {
    text =
      typeof input === 'string'
        ? input
        : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input);
  } catch {
    return { ok: false, fault: 'encoding' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, fault: 'syntax' };
  }
  return namesAMemberTwice(text, value) ? { ok: false, fault: 'duplicate' } : { ok: true, value };
}

/** Whether some object in a valid text names a member twice. */
function namesAMemberTwice(json: string, value: unknown): boolean {
  return json.includes('\\') ? hasEqualNames(json) : membersInText(json) > membersIn(value);
}

/**
 * How many members a valid text without escapes has: every colon outside of a string belongs to one. The value that
 * was read from it has fewer exactly where a name came twice, since `JSON.parse` keeps one of them; to count both is
 * several times faster than to compare names.
 */
function membersInText(json: string): number {
  let members = 0;
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index);
    if (code === COLON) members += 1;
    else if (code === QUOTE) index = json.indexOf('"', index + 1);
  }
  return members;
}

const COLON = 0x3a;
const QUOTE = 0x22;

/** A stack instead of recursion, since nesting is the sender's choice. */
function membersIn(value: unknown): number {
  let members = 0;
  const left: unknown[] = [value];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const values: unknown[] = Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const inner of values) if (typeof inner === 'object' && inner !== null) left.push(inner);
  }
  return members;
}

/**
 * By comparing the names, for a text with escapes, whose value can't be relied on for its count: once V8 13.6 has read
 * `{"a":1,"\\":2}`, it reads the second name of `{"a":1,"\u0062":2}` as a backslash too.
 */
function hasEqualNames(json: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  const lexeme = /"(?:[^"\\]|\\.)*"|[{}[\]]/g;
  for (let match = lexeme.exec(json); match; match = lexeme.exec(json)) {
    const [found] = match;
    if (found === '{') open.push(new Set());
    else if (found === '[') open.push(undefined);
    else if (found === '}' || found === ']') open.pop();
    else if (isMemberName(json, lexeme.lastIndex)) {
      const names = open.at(-1);
      const name = String(JSON.parse(found));
      if (names?.has(name)) return true;
      names?.add(name);
    }
  }
  return false;
}

function isMemberName(json: string, after: number): boolean {
  let index = after;
  while (' \t\n\r'.includes(json.charAt(index)) && index < json.length) index += 1;
  return json[index] === ':';
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
