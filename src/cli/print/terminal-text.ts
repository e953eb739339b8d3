/**
 * Controls, and the characters that change the direction of text, hide in it or look like a space and are none: what a
 * service or a token could use to make a terminal show something else (HOSTILE.md 7, 60; CLI.md, "Output"). Unicode's
 * own "default ignorable" are tags, variation selectors, fillers, joiners and whatever else has no width.
 */
const UNSAFE =
  /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}\ufff9-\ufffb\u2800\u{16fe4}\u{1d159}]/gu;

/**
 * Text from elsewhere, made fit to print: every control or invisible character is shown as its code, in UTF-16 as JSON
 * has it.
 *
 * @example escapeText('red\u001b[31m') // 'red\\u001b[31m'
 */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, (found) =>
    Array.from({ length: found.length }, (_, at) => codeOf(found, at)).join(''),
  );
}

function codeOf(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
}

/** The same for a text of several lines, whose line ends are kept. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeText).join('\n');
}

/**
 * JSON on one line, in which no such character stands as it is: inside its strings each has a spelling that means the same.
 *
 * @param replacer as that of JSON.stringify
 */
export function jsonText(value: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  return escapeText(JSON.stringify(value, replacer));
}
