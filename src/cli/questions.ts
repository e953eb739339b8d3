import { Failure, ownCommand } from '../contract/failure.ts';
import { type Choosable, hinted, type Picker } from '../session/choice.ts';
import type { Context } from './context.ts';

/** A person has said no, or chosen nothing: the command ends with exit code 0, and changes nothing. */
export class Declined extends Error {
  override readonly name = 'Declined';

  /** @param message what was not done, as a sentence for people */
  constructor(message = 'Nothing was changed.') {
    super(message);
  }
}

/**
 * Lets a person choose the project or experiment of a command, once, and offers to keep it in the profile.
 *
 * @param keep writes the choice into the profile
 */
export function pickerFor(
  asking: Context,
  profile: string,
  keep: (noun: 'project' | 'experiment', chosen: Choosable) => Promise<void>,
): Picker {
  const chosen = new Map<string, string>();
  return async (noun, items) => {
    const before = items.find(({ id }) => id === chosen.get(noun));
    if (before) return before;
    const title = `You have several active ${noun}s. Which one?`;
    const item = await pick(asking, title, items, ({ id, name }) => (name === '' ? id : `${name}  ${id}`));
    chosen.set(noun, item.id);
    const question = `Use it for later commands too, in profile ${profile}?`;
    if (await accepts(asking, question)) await keep(noun, item);
    return item;
  };
}

/**
 * Checks that a question can be asked, or need not be: with `--yes`. To be called before anything is sent.
 *
 * @param message what was not confirmed, as a sentence
 * @throws Failure `usage` without a terminal
 */
export function checkConfirmable({ terminal: { ask }, flags, typed }: Context, message: string): void {
  if (flags.yes || ask) return;
  throw new Failure('usage', message, {
    why: 'Without a terminal to ask on, this needs --yes.',
    fix: ownCommand('--yes', ...typed.texts),
  });
}

/**
 * Asks whether to go on. `--yes` answers yes; Enter and Ctrl-D answer no.
 *
 * @param isExpected whether Enter answers yes
 * @param unasked what was not confirmed, as a sentence; see {@link checkConfirmable}
 * @param declined what was not done after a no, as a sentence
 * @throws Failure `usage` without a terminal; Declined when the answer is no
 */
export async function confirm(
  context: Context,
  question: string,
  { unasked, declined, isExpected = false }: { unasked: string; declined?: string; isExpected?: boolean },
): Promise<void> {
  checkConfirmable(context, unasked);
  if (context.flags.yes) return;
  const answer = await context.terminal.ask?.(`${question} ${isExpected ? '[Y/n]' : '[y/N]'} `);
  if (!isYes(answer) && !(isExpected && answer?.trim() === '')) throw new Declined(declined);
}

/**
 * Asks whether to go on with what may not be meant so. Without a terminal, and with `--yes`, it goes on.
 *
 * @throws Declined when the answer is no
 */
export async function confirmIfAsked(context: Context, question: string, declined?: string): Promise<void> {
  if (context.terminal.ask) await confirm(context, question, { unasked: question, declined });
}

/**
 * Checks a file that a command is to write, and asks before it replaces one. To be called before anything is
 * sent.
 *
 * @param declined what was not done after a no, as a sentence
 * @throws Failure `file_unusable`, `usage` without a terminal; Declined when the answer is no
 */
export async function confirmWriting(context: Context, path: string, declined: string): Promise<void> {
  await context.files.checkWritable(path);
  if (!(await context.files.exists(path))) return;
  await confirm(context, `Replace the file ${path}?`, {
    unasked: `The file ${path} exists, and replacing it was not confirmed.`,
    declined,
  });
}

/**
 * Offers something that the command does not need. There is no question without a terminal, and where a
 * program reads the result.
 *
 * @returns whether the answer is yes
 */
export async function accepts({ flags, terminal: { ask } }: Context, question: string): Promise<boolean> {
  if (!ask || flags.json || flags.quiet) return false;
  return flags.yes === true || isYes(await ask(`${question} [y/N] `));
}

const isYes = (answer = ''): boolean => /^y(?:es)?$/i.test(answer.trim());

/**
 * Lets a person choose one of several items by its number, or by the first word of its label. Only for a terminal.
 *
 * @param title what is chosen, as a line
 * @param label an item as one line
 * @param declined what was not done where none is chosen, as a sentence
 * @throws Declined when nothing is chosen: Enter, `q`, or Ctrl-D
 */
export async function pick<Item>(
  context: Context,
  title: string,
  items: readonly Item[],
  label: (item: Item) => string,
  declined?: string,
): Promise<Item> {
  const { output } = context;
  const labels = items.map(label);
  const width = String(items.length).length;
  output.prompt(title);
  for (const [index, text] of labels.entries())
    output.prompt(`  ${String(index + 1).padStart(width)}  ${text}`);
  const names = labels.map((text) => text.split(' ')[0] ?? '');
  const item = await numbered(context, 'Number or name (Enter: none): ', items, names);
  if (item === undefined) throw new Declined(declined);
  return item;
}

/**
 * Asks for a value until it can be read.
 *
 * @param read reads the answer as the command will; its failure is told, and the question asked again
 * @param declined what was not done where the answer is empty, as a sentence; undefined: an empty answer is one
 * @returns the answer as it was typed
 * @throws Declined for an empty answer, and after Ctrl-D
 */
export async function askFor(
  { output, terminal: { ask } }: Context,
  question: string,
  read: (text: string) => unknown,
  declined: string | undefined,
): Promise<string> {
  for (;;) {
    // As a shell takes them away: the examples in questions have them.
    const answer = (await ask?.(question))?.trim().replace(/^(['"])(.*)\1$/, '$2');
    if (answer === undefined || (answer === '' && declined !== undefined)) throw new Declined(declined);
    try {
      read(answer);
      return answer;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      output.notice(`${error.message} ${error.facts.why ?? ''}`);
    }
  }
}

/**
 * Asks for the number of one of several items, which were shown before, the first as 1.
 *
 * @param names their names, which may be typed too. Default: none
 * @returns undefined when none is chosen: Enter, `q`, or Ctrl-D
 */
export async function numbered<Item>(
  { output, terminal: { ask } }: Context,
  question: string,
  items: readonly Item[],
  names: readonly string[] = [],
): Promise<Item | undefined> {
  for (;;) {
    const answer = (await ask?.(question))?.trim() ?? '';
    if (answer === '' || answer === 'q') return undefined;
    const numbered = /^\d{1,6}$/.test(answer) ? items[Number(answer) - 1] : undefined;
    const item = numbered ?? items[names.indexOf(answer)];
    if (item !== undefined) return item;
    const range = items.length === 1 ? 'Type 1, or nothing.' : `Type a number from 1 to ${items.length}.`;
    output.prompt(hinted(range, answer, names));
  }
}

/** The failure that names all that was not typed. @param path of the command @param parts at least one, as in its usage */
export function missingFailure(path: string, parts: readonly string[]): Failure {
  // Made here: it costs 12 ms, and hardly a command needs it.
  const listed = new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(parts);
  return new Failure('usage', `${path} needs ${listed}.`);
}
