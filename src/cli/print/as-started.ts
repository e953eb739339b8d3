import { shellWord } from '../../contract/failure.ts';
import type { Variables } from '../../session/profiles/folders.ts';

/** This program's name, with which advice is written. */
export const PROGRAM = 'slices-conn';

/**
 * How a person types this program: behind `npx` where that started it, since it is then on no PATH; a single executable that has
 * another file name as it was typed; else by its name. An `npx` that started another program, such as a test runner, does not
 * count.
 */
export function startedAs({
  variables: { npm_command, npm_lifecycle_script = PROGRAM },
  executable = PROGRAM,
}: {
  variables: Variables;
  executable?: string | undefined;
}): string {
  if (!/(?:^|[\\/])slices-conn(?:\.exe)?$/i.test(executable)) return shellWord(executable);
  return npm_command === 'exec' && /^["']?slices-conn\b/.test(npm_lifecycle_script)
    ? `npx ${PROGRAM}`
    : PROGRAM;
}

/** This program's name before a command or a flag; or what a shell takes as it is, in which the name is someone's text. */
const NAME_OR_QUOTED =
  /\\.|(?<!\w)'[^']*'|(?<![\w@./-]|\b(?:[Aa]n?(?:other)?|newer|npx|[Tt]he) )slices-conn (?=[-a-z])/g;

/**
 * Advice as it is typed where the program was started. Every text with a command passes here before it is laid out.
 *
 * @param program see {@link startedAs}
 * @param text a command, or sentences with commands
 * @example asStarted('npx slices-conn', 'To see it: slices-conn list') // 'To see it: npx slices-conn list'
 */
export function asStarted(program: string, text: string): string {
  return text.replace(NAME_OR_QUOTED, (found) => (found === `${PROGRAM} ` ? `${program} ` : found));
}

/** Members of printed objects that hold advice. */
const ADVISING: readonly string[] = ['again', 'command', 'fix', 'why'];

/** A member of a printed object; advice is {@link asStarted}. */
export function memberAsStarted(program: string, name: string, value: unknown): unknown {
  return typeof value === 'string' && ADVISING.includes(name) ? asStarted(program, value) : value;
}
