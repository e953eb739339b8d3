import { type AdviceShell, LINE_CONTINUATION } from './shells.ts';

/** Words in lines of at most so many columns; a longer word has a line of its own. Gaps of several blanks stay within a line. */
export function folded(text: string, width: number, words = /\S+(?: +(?= ))?/g): string[] {
  const lines: string[] = [];
  for (const word of text.match(words) ?? []) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** A command over several lines for a shell, where it needs them. @param line the command, with its indent */
export function continued(line: string, width: number, shell: AdviceShell): string {
  if (line.length <= width) return line;
  const indent = /^ */.exec(line)?.[0] ?? '';
  // Room for the blank and the character.
  const lines = folded(line.trimStart(), width - indent.length - 6, SHELL_WORDS);
  return indent + lines.join(` ${LINE_CONTINUATION[shell]}\n${indent}    `);
}

/** Words of a command, quoted ones whole, and each flag with the word after it, which may be its value. */
const SHELL_WORDS = /(?:--[\w-]+ (?=[^\s-]))?(?:\\.|'[^']*'|"[^"]*"|[^\s'"\\])+/g;
