/**
 * Control characters, and characters that change the direction of text or are invisible. With them, text of a service or
 * a token could make a terminal or a page show something else (THREATS.md 7, 60; cli/README.md, "Output"). Unicode's "default ignorable"
 * covers tags, variation selectors, fillers, joiners and other characters without a width.
 */
const UNSAFE =
  /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}\ufff9-\ufffb\u2800\u{16fe4}\u{1d159}]/gu;

/** Whether a text is one line of so many whole characters at most, without those that turn the direction of text. */
export function isOneLine(text: string, most: number): boolean {
  return [...text].length <= most && !/[\p{Cc}\p{Cs}\p{Bidi_Control}]/u.test(text);
}

/**
 * Makes foreign text safe to print: each control or invisible character becomes its UTF-16 code, as in JSON.
 *
 * @example escapeText('red\u001b[31m') // 'red\\u001b[31m'
 */
export function escapeText(text: string): string {
  // Most texts are quick to tell.
  if (!/[^ -~]/.test(text)) return text;
  return text.replace(UNSAFE, (found) =>
    Array.from({ length: found.length }, (_, at) => characterCode(found, at)).join(''),
  );
}

/**
 * JSON on one line, with these characters escaped inside its strings; its value stays the same.
 *
 * @param replacer as that of JSON.stringify
 */
export function jsonText(value: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  return escapeText(JSON.stringify(value, replacer));
}

/** The UTF-16 code at a place of a text, as JSON writes it. @example characterCode('\n', 0) // '\\u000a' */
export function characterCode(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
}
