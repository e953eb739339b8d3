import { distance } from 'fastest-levenshtein';
import { Failure, shellWord } from '../contract/failure.ts';
import { parseInstant } from '../contract/instants.ts';

/** A project or an experiment, which people choose by id or name. */
export interface Choosable {
  id: string;
  /** An empty string when it is not known. */
  name: string;
  /** RFC 3339; an empty string when it is not known. */
  expires_at: string;
}

/** Lets a person choose one of several active items. May throw what ends the command. */
export type Picker = <Item extends Choosable>(
  noun: 'project' | 'experiment',
  items: readonly Item[],
) => Promise<Item>;

/** Options of {@link chooseOne}. */
export interface ChoiceOptions {
  /** Chooses one of several active items; undefined without a terminal. */
  pick?: Picker;
  /** Names by id, of what a profile keeps: it is found by name where its id is not known (cli/README.md, "Files"). */
  chosenNames?: Readonly<Record<string, string>>;
  /** The name of the project whose items they are; undefined where they are those of all. */
  project?: string;
}

/**
 * Chooses an item by id or name; without either, the only active item (cli/README.md, "Global flags"): what is printed names it.
 *
 * @param now milliseconds; an expired item is not active
 * @throws Failure `not_found` for an id or name that no item has, `usage` where an item must be chosen, with the next step
 */
export async function chooseOne<Item extends Choosable>(
  noun: 'project' | 'experiment',
  wanted: string | undefined,
  items: readonly Item[],
  now: number,
  { pick, chosenNames = {}, project }: ChoiceOptions = {},
): Promise<Item> {
  const where = project === undefined ? '' : ` in the project ${project}`;
  const active = items.filter(
    ({ expires_at }) => (parseInstant(expires_at, 'utc-if-absent') ?? Infinity) > now,
  );
  if (wanted === undefined) {
    const [only, another] = active;
    if (only && !another) return only;
    if (!only) throw new Failure('usage', `You have no active ${noun}${where}.`, adviceForNone(noun));
    if (pick) return pick(noun, active);
    throw new Failure('usage', `You have several active ${noun}s${where}; name one with --${noun}.`, {
      why: `They are ${listed(active)}`,
      fix: `slices-conn ${noun} use ${shellWord(canBeTyped(only, active) ? only.name : only.id)}`,
    });
  }
  const byId = items.find(({ id }) => id === wanted);
  if (byId) return byId;
  const name = chosenNames[wanted] ?? wanted;
  const named = items.filter((item) => item.name === name);
  const [only, another] = named.length > 1 ? named.filter((item) => active.includes(item)) : named;
  if (only && !another) return only;
  if (named.length > 0) {
    throw new Failure('usage', `Several ${noun}s${where} are named ${name}; give the id.`, {
      why: listed(named),
    });
  }
  const names = items.map((item) => item.name).filter((known) => known !== '');
  throw new Failure('not_found', hinted(`You have no ${noun} ${wanted}${where}.`, name, names), {
    why: items.length > 0 ? `Yours: ${listed(items)}` : `You are in no ${noun}${where}.`,
    fix: `slices-conn ${noun} list`,
  });
}

/** Whether a word is an item's id or name. @param options the names of a profile's choices */
export function isNamed(
  { id, name }: Choosable,
  word: string | undefined,
  { chosenNames = {} }: ChoiceOptions = {},
): boolean {
  return word !== undefined && (id === word || name === (chosenNames[word] ?? word));
}

/** Whether an item can be named by its name: not one that looks like a flag, is shown escaped, or is another's too. */
function canBeTyped({ name }: Choosable, items: readonly Choosable[]): boolean {
  return /^\w[\w .'-]*$/.test(name) && items.filter((item) => item.name === name).length === 1;
}

function adviceForNone(noun: 'project' | 'experiment'): { why: string; fix?: string } {
  return noun === 'experiment'
    ? {
        why: 'Every reservation belongs to an active experiment.',
        fix: 'slices-conn experiment create my-experiment --end +30d',
      }
    : { why: 'A project lead can add you to one.' };
}

/** The most items that a sentence lists. */
const MOST_LISTED = 10;

function listed(items: readonly Choosable[]): string {
  const more = items.length - MOST_LISTED;
  const shownItems = items.slice(0, MOST_LISTED).map(shown).join(', ');
  return more > 0 ? `${shownItems}, and ${more} more.` : `${shownItems}.`;
}

function shown({ id, name }: Choosable): string {
  return name === '' ? id : `${name} (${id})`;
}

/** A sentence about a mistyped word, with the known word that is {@link nearest} to it: `… Did you mean be-gent1?` */
export function hinted(what: string, word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? what : `${what} Did you mean ${near}?`;
}

/** The most edits in a typing error. */
const MAX_DISTANCE = 3;

/**
 * The known word that is most like a mistyped one. Undefined when the word itself is known, or when every word differs
 * too much. Case is ignored. A part of three letters or more finds its whole: `poznan` finds `pl-poznan1`.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.includes(word)) return undefined;
  const wanted = word.toLowerCase();
  const containing = known.filter((name) => wanted.length >= 3 && name.toLowerCase().includes(wanted));
  const [only, another] = containing;
  if (only !== undefined && another === undefined) return only;
  const [best] = known
    .filter((name) => Math.abs(name.length - wanted.length) <= MAX_DISTANCE)
    .map((name) => ({ name, far: distance(wanted, name.toLowerCase()) }))
    .sort((a, b) => a.far - b.far);
  // Three edits would replace most of a short word. The dashes of a flag are always right.
  const letters = wanted.replace(/^--/, '').length;
  return best && best.far <= Math.min(MAX_DISTANCE, letters / 2) ? best.name : undefined;
}
