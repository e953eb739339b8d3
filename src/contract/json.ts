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
  return namesAMemberTwice(text) ? { ok: false, fault: 'duplicate' } : { ok: true, value };
}

/** Walks text that is known to be valid JSON; a stack instead of recursion, since nesting is the sender's choice. */
function namesAMemberTwice(json: string): boolean {
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
