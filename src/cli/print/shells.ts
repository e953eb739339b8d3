import type { Variables } from '../../session/profiles/folders.ts';

/** A shell that advice is written for. `posix` stands for all of Unix, and for that of Git on Windows. */
export type AdviceShell = 'posix' | 'powershell' | 'cmd';

/**
 * The shell that this program was probably started from, which no program can see: only Windows sets `OS`, shells of Unix on
 * it `SHELL` or `MSYSTEM`, and PowerShell adds its user's folder to those of modules that the machine has.
 */
export function shellOf({
  OS,
  SHELL,
  MSYSTEM,
  PSModulePath = '',
  ProgramFiles = 'C:\\Program Files',
  SystemRoot = 'C:\\Windows',
}: Variables): AdviceShell {
  if (OS !== 'Windows_NT' || SHELL || MSYSTEM) return 'posix';
  const ofMachine = [ProgramFiles, SystemRoot].map((folder) => folder.toLowerCase());
  const modules = PSModulePath.toLowerCase()
    .split(';')
    .filter((folder) => /\\(?:windows)?powershell\\modules\\?$/.test(folder));
  return modules.some((folder) => !ofMachine.some((above) => folder.startsWith(above)))
    ? 'powershell'
    : 'cmd';
}

/** How a shell goes on with a command in the next line. */
export const LINE_CONTINUATION: Readonly<Record<AdviceShell, string>> = {
  posix: '\\',
  powershell: '`',
  cmd: '^',
};

/** The characters that each shell replaces between double quotes, or reads as their end. PowerShell reads typographic quotes too. */
const REPLACED = { powershell: /["“”„$`]/, cmd: /["%]/ };

/**
 * Quotes a text as one word for a shell of Windows. Double quotes serve both, but where a shell replaces what is inside them.
 *
 * @example quoted('powershell', 'my link') // '"my link"'
 */
export function quoted(shell: Exclude<AdviceShell, 'posix'>, text: string): string {
  if (/^[\w+:./\\-][\w@+=:./\\-]*$/.test(text)) return text;
  // A backslash before a quote would be read as part of it.
  const inDouble = `"${text.replace(/\\+$/, '$&$&')}"`;
  if (!REPLACED[shell].test(text)) return inDouble;
  if (shell === 'powershell') return `'${text.replace(/['‘’‚‛]/g, '$&$&')}'`;
  // A program reads \\" as a quote, and the shell sees no quotes behind its carets.
  const forProgram = text.replace(/(\\*)"/g, String.raw`$1$1\"`).replace(/\\+$/, '$&$&');
  return `"${forProgram}"`.replace(/[()%!^"<>&|]/g, '^$&');
}

/** Parts of advice that a shell of Windows takes otherwise than one of Unix. A member is undefined where the part is another. */
export interface UnixPart {
  /** A quoted word, with its quotes. */
  quotes?: string;
  /** Names of variables that are unset. */
  variables?: string;
  /** The end of a command that another one follows. */
  next?: string;
  /** Words between commas. */
  list?: string;
  /** The two dashes before another command. */
  dashes?: string;
  /** The name of the command that moves a file. */
  move?: string;
}

/** Finds each {@link UnixPart}, as the source of an expression. A quoted word is found whole: nothing in it is looked at. */
export const UNIX_PARTS = [
  String.raw`(?<quotes>(?<!\w)'[^']*'(?:(?:\\.)+'[^']*')*)`,
  String.raw`\bunset (?<variables>\w*[A-Z_]\w*(?: \w*[A-Z_]\w*)*)(?<next> && )?`,
  String.raw`(?<=--[\w-]+ )(?<list>[^\s'"]+,[^\s'"]+)`,
  '(?<= )(?<dashes>--)(?= )',
  String.raw`\b(?<move>mv)(?= \S)`,
].join('|');

/** A part of advice, for a shell of Windows. @param found the whole of it, which stays where no shell takes it otherwise */
export function partFor(shell: Exclude<AdviceShell, 'posix'>, found: string, part: UnixPart): string {
  const { quotes, variables, next, list, dashes, move } = part;
  if (quotes !== undefined) return quoted(shell, unquoted(quotes));
  if (variables !== undefined) return withoutVariables(shell, variables.split(' '), next !== undefined);
  if (move !== undefined) return 'move';
  // PowerShell makes several words of a list, and takes two dashes away from scripts such as npm's.
  const kept = list ?? dashes;
  return shell === 'powershell' && kept !== undefined ? `"${kept}"` : found;
}

/** @param hasNext whether a command follows */
function withoutVariables(shell: AdviceShell, names: readonly string[], hasNext: boolean): string {
  if (shell === 'cmd') return names.map((name) => `set "${name}="`).join(' && ') + (hasNext ? ' && ' : '');
  // The older PowerShell, which Windows has, knows no `&&`.
  return `Remove-Item ${names.map((name) => `Env:${name}`).join(', ')}${hasNext ? '; ' : ''}`;
}

/** The text of a word that {@link shellWord} quoted. */
function unquoted(word: string): string {
  return word.replace(/'([^']*)'|\\(.)/g, (_, plain?: string, escaped?: string) => plain ?? escaped ?? '');
}
