import {
  type Alias,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import { parseBandwidth, parseDuration } from '../../contract/amounts.ts';
import { Failure } from '../../contract/failure.ts';
import { RESERVATION_NAME } from '../../contract/fields.ts';
import { formatInstant, isTimeZone } from '../../contract/instants.ts';
import { RESERVATION_TEXTS, textsOf } from '../../contract/reservation.ts';
import type { ReservationRequest } from '../../contract/reservation-request.ts';
import { hinted } from '../../session/choice.ts';
import { clockOf, timeText } from '../../words/civil-time.ts';
import { contradictionText } from '../../words/links.ts';
import { adviceOnTime, later, parseTime, type TimeReading } from '../../words/typed-time.ts';
import type { TimeContext } from '../times.ts';
import { siteName } from '../values.ts';

/** A reservation that a plan file wants to exist under a name. Times in milliseconds, bandwidth in Mbps. */
export interface WantedReservation extends ReservationRequest {
  name: string;
  bandwidth: number;
  /** How long it lasts. A start of `now` is when it is applied, unless a reservation that has not ended meets it. */
  length: number;
  /** Where its sites stand, as `demo.yaml:7:12`. */
  place: string;
}

/** A plan file that was read (cli/README.md, "Values"). */
export interface PlanContent {
  /** Id or name of the experiment; undefined where the file names none. */
  experiment: string | undefined;
  /** In the order of the file. */
  reservations: readonly WantedReservation[];
}

/** The most that is read of a plan file, in bytes. */
const MAX_SIZE = 1_048_576;
/** The most errors that are told. */
const MOST_TOLD = 20;
const HELP = 'slices-conn plan --help';

const TOP = ['version', 'experiment', 'tz', 'defaults', 'reservations', '$schema'];
/** The texts of a reservation in a plan, beside the name under which it stands. */
export const PLAN_TEXTS = RESERVATION_TEXTS.filter((text) => text !== 'name');
const FIELDS = ['sites', 'bandwidth', 'start', 'end', 'for', 'via', 'avoid', 'direct', ...PLAN_TEXTS];

/** A key of a mapping, and its value. */
interface Member {
  key: Node;
  value: Node;
}
type Members = ReadonlyMap<string, Member>;

/**
 * Reads a plan file: YAML 1.2 or JSON.
 *
 * @param name the file's name in errors, such as `demo.yaml`
 * @param times the current time; a time in the file has its own zone, or the file's `tz`
 * @throws Failure `usage` that says of every error in which line and column it is
 */
export function readPlan(bytes: Uint8Array, name: string, times: TimeContext): PlanContent {
  if (bytes.length > MAX_SIZE) {
    const most = `A plan file has at most ${MAX_SIZE / 1024} KiB, and this one has ${Math.ceil(bytes.length / 1024)}.`;
    throw new Failure('usage', `${name} is too large.`, { why: most, fix: HELP });
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure('usage', `${name} is not text in UTF-8.`, { fix: HELP });
  }
  return new PlanFile(name, times).read(text);
}

/** Reads one file, and gathers all of its errors. */
class PlanFile {
  readonly #lines = new LineCounter();
  readonly #name: string;
  /** The zone of the file's times, once it has named one. */
  #zone: PlanZone;
  /** The node of each alias: a name may be given to several nodes, and means the one before the alias. */
  readonly #targets = new Map<Alias, Node>();
  /** By their text, with their place: an error in the defaults is found with each reservation. */
  readonly #errors = new Map<string, number>();

  constructor(name: string, { now, zone }: TimeContext) {
    this.#name = name;
    this.#zone = { now, zone, isOfFile: false };
  }

  /** @throws Failure `usage` where there are errors */
  read(text: string): PlanContent {
    const top = this.#parse(text);
    this.#check();
    const plan = this.#top(top);
    this.#check();
    return plan;
  }

  #parse(text: string): Node | undefined {
    try {
      const document = parseDocument(text, {
        // Each value is a text as it is written, so that it is read as the command line reads it.
        schema: 'failsafe',
        lineCounter: this.#lines,
        prettyErrors: false,
        // Told here, each with its own line.
        uniqueKeys: false,
        logLevel: 'error',
      });
      const named = new Map<string, Node>();
      visit(document, (_key, node) => {
        const target = isAlias(node) ? named.get(node.source) : undefined;
        if (isAlias(node) && target) this.#targets.set(node, target);
        else if (isNode(node) && !isAlias(node) && node.anchor !== undefined) named.set(node.anchor, node);
      });
      const found = [...document.errors, ...document.warnings];
      const deep = found.find(({ message }) => message.includes(TOO_DEEP));
      // A second error of a parser at one place follows from the first.
      const told = Map.groupBy(deep ? [deep] : found, ({ pos }) => pos[0]);
      for (const [offset, [error]] of told) this.#wrongAt(offset, syntaxError(error?.message));
      return document.contents ?? undefined;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#wrongAt(0, syntaxError(TOO_DEEP));
      return undefined;
    }
  }

  #check(): void {
    const told = [...this.#errors].toSorted(([, one], [, other]) => one - other).map(([text]) => text);
    const [first, ...others] = told;
    if (first === undefined) return;
    if (others.length === 0) throw new Failure('usage', first, { fix: HELP });
    const more = told.length - MOST_TOLD;
    throw new Failure('usage', `${this.#name} has ${told.length} errors.`, {
      lines: [...told.slice(0, MOST_TOLD), ...(more > 0 ? [`and ${more} more`] : [])],
      fix: HELP,
    });
  }

  #top(top: Node | undefined): PlanContent {
    const begins = 'A plan file begins with "version: 1", and has reservations by their names.';
    const members = this.#members(top, begins, TOP, 'a plan file') ?? new Map<string, Member>();
    const [version, experiment, tz] = ['version', 'experiment', 'tz'].map((key) => members.get(key)?.value);
    if (!version && members.size > 0) this.#wrong(top, '"version: 1" is missing.');
    if (version && this.#text(version) !== '1')
      this.#wrong(version, 'This program reads plan files of version 1: write "version: 1".');
    this.#readZone(tz);
    const given = members.get('defaults')?.value;
    const defaults = (given && this.#fields(given, 'defaults')) ?? new Map();
    const listed = members.get('reservations')?.value;
    if (!listed && members.size > 0)
      this.#wrong(top, 'reservations are missing: names, each with sites, bandwidth, start, and end or for.');
    const form = 'reservations must be names, each with what it wants; {} for none.';
    const named = listed && this.#members(listed, form);
    return {
      experiment: experiment && this.#guarded(experiment, (text) => text),
      reservations: [...(named ?? [])].flatMap(
        ([name, member]) => this.#wanted(name, member, defaults) ?? [],
      ),
    };
  }

  /** Reads `tz`, the zone of the file's times. The machine's would move links where another machine applies the file. */
  #readZone(node: Node | undefined): void {
    if (!node) return;
    const zone = this.#guarded(node, (text) => {
      if (isTimeZone(text)) return text;
      const why = 'Write it as Europe/Brussels, UTC or +01:00.';
      throw new Failure('usage', `${JSON.stringify(text)} is not a time zone.`, { why });
    });
    // A zone that is wrong is told once, and not of each time.
    this.#zone = { ...this.#zone, isOfFile: true, ...(zone === undefined ? {} : { zone }) };
  }

  #fields(node: Node, what: string): Members | undefined {
    return this.#members(node, `Here belong the keys of ${what}: ${FIELDS.join(', ')}.`, FIELDS, what);
  }

  /** The start that the file means. The advice for a wrong end goes by it. Default: now. */
  #meantBy(start: Node | undefined): number {
    try {
      return parseTime((start && this.#text(start)) ?? '', this.#zone);
    } catch {
      return this.#zone.now;
    }
  }

  /** One reservation with its defaults; undefined where something is wrong. */
  #wanted(name: string, { key, value: node }: Member, defaults: Members): WantedReservation | undefined {
    if (!RESERVATION_NAME.test(name)) {
      const rule = 'Names have 1 to 64 characters of a to z, 0 to 9 and -, and begin with a letter.';
      this.#wrong(key, `${JSON.stringify(name)} is not a name of a reservation. ${rule}`);
    }
    const own = this.#fields(node, 'a reservation');
    if (!own) return undefined;
    // An own end or duration replaces either of the defaults.
    const isTimed = own.has('end') || own.has('for');
    const kept = [...defaults].filter(([field]) => !isTimed || !['end', 'for'].includes(field));
    const members = new Map([...kept, ...own]);
    const at = (field: string): Node | undefined => members.get(field)?.value;
    const read = <Value>(field: string, reader: (text: string) => Value): Value | undefined => {
      const found = at(field);
      return found && this.#guarded(found, reader);
    };
    const missing = ['sites', 'bandwidth', 'start'].filter((field) => !at(field));
    if (!at('end') && !at('for')) missing.push('end or for');
    if (missing.length > 0) this.#wrong(key, `${name} has no ${missing.join(', and no ')}.`);
    const { now } = this.#zone;
    const ends = this.#ends(at('sites'));
    const bandwidth = read('bandwidth', parseBandwidth);
    const start = read('start', (text) =>
      /^\s*now\s*$/i.test(text) ? 'now' : readPlanTime(text, this.#zone, {}, ', or now'),
    );
    const from = typeof start === 'number' ? start : this.#meantBy(at('start'));
    const lasting = read('for', (text) => later(from, parseDuration(text)));
    const named = read('end', (text) =>
      readPlanTime(text, this.#zone, { after: Math.max(from, now), isEnd: true }),
    );
    const route = {
      via: at('via') && this.#siteList(at('via')),
      avoid: at('avoid') && this.#siteList(at('avoid')),
      direct: read('direct', isTrue),
    };
    const texts = textsOf(Object.fromEntries(PLAN_TEXTS.map((text) => [text, read(text, (typed) => typed)])));
    const end = lasting ?? named;
    const place = at('end') ?? at('start') ?? key;
    if (at('end') && at('for')) this.#wrong(at('for'), "end and for can't be given together.");
    else if (start === 'now' && at('end'))
      this.#wrong(place, `${name} starts now, and needs a duration: write "for: 2h" in place of the end.`);
    else if (start !== undefined && end !== undefined && end <= from)
      this.#wrong(place, `${name} would end before it starts.`);
    if (!ends || bandwidth === undefined || start === undefined || end === undefined) return undefined;
    const contradiction = contradictionText({ ...ends, ...route });
    if (contradiction !== undefined) this.#wrong(key, contradiction);
    return {
      ...{ ...route, ...texts, name, ...ends, bandwidth, start, end, length: end - from },
      place: this.#placeOf(offsetOf(at('sites'))),
    };
  }

  #ends(node: Node | undefined): { site1: string; site2: string } | undefined {
    if (!node) return undefined;
    const list = this.#resolved(node);
    const [one, other, more] = isSeq<Node>(list) ? list.items : [];
    if (!one || !other || more) {
      this.#wrong(node, 'sites must be the two ends of a link, such as [be-gent1, pl-poznan1].');
      return undefined;
    }
    const [site1, site2] = [this.#guarded(one, siteName), this.#guarded(other, siteName)];
    if (site1 === undefined || site2 === undefined) return undefined;
    if (site1 === site2) this.#wrong(other, `A link has two different ends, and both are ${site1}.`);
    return { site1, site2 };
  }

  #siteList(node: Node | undefined): string[] {
    const list = this.#resolved(node);
    const nodes = isSeq<Node>(list) ? list.items : list ? [list] : [];
    return nodes.flatMap((one) => this.#guarded(one, siteName) ?? []);
  }

  /** A value of the text of a node; undefined where it is wrong. */
  #guarded<Value>(node: Node, read: (text: string) => Value): Value | undefined {
    const text = this.#text(node);
    try {
      if (text !== undefined) return read(text);
      this.#wrong(node, 'Here belongs one value.');
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#wrong(node, [error.message, error.facts.why].filter((part) => part !== undefined).join(' '));
    }
    return undefined;
  }

  /**
   * The members of a mapping by their keys. A key that is given twice, or not known, is an error.
   *
   * @param form what is said where the node is not a mapping; then there are none
   * @param known all keys that there are; without it any is taken
   */
  #members(node: Node | undefined, form: string, known?: readonly string[], what = ''): Members | undefined {
    const map = this.#resolved(node);
    if (!isMap(map)) {
      this.#wrong(node, form);
      return undefined;
    }
    const members = new Map<string, Member>();
    for (const { key, value } of map.items as { key: Node; value: Node | null }[]) {
      const name = this.#text(key);
      const before = name === undefined ? undefined : members.get(name);
      if (name === undefined) this.#wrong(key, 'A key must be one word.');
      else if (before) {
        const { line } = this.#lines.linePos(offsetOf(before.key));
        this.#wrong(key, `${JSON.stringify(name)} is given twice; the first is in line ${line}.`);
      } else if (known && !known.includes(name)) {
        const keys = known.filter((each) => !each.startsWith('$')).join(', ');
        const found = `${JSON.stringify(name)} is not a key of ${what}.`;
        const said = hinted(found, name, known);
        this.#wrong(key, said === found ? `${found} Its keys are ${keys}.` : said);
      } else members.set(name, { key, value: value ?? key });
    }
    return members;
  }

  /** The node of an alias; any other node as it is. */
  #resolved(node: Node | undefined): Node | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  #text(node: Node): string | undefined {
    const found = this.#resolved(node);
    if (!isScalar<string>(found)) return undefined;
    return found.type === 'PLAIN' && /^(?:null|~|)$/i.test(found.value) ? undefined : found.value;
  }

  #wrong(node: Node | undefined, text: string): void {
    this.#wrongAt(offsetOf(node), text);
  }

  #wrongAt(offset: number, text: string): void {
    this.#errors.set(`${this.#placeOf(offset)}: ${text}`, offset);
  }

  #placeOf(offset: number): string {
    const { line, col } = this.#lines.linePos(offset);
    return `${this.#name}:${Math.max(1, line)}:${Math.max(1, col)}`;
  }
}

/** @throws Failure `usage` */
function isTrue(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new Failure('usage', `${JSON.stringify(text)} is neither true nor false.`);
}

function offsetOf(node: Node | undefined): number {
  return node?.range?.[0] ?? 0;
}

/** The engine's message for thousands of lists in each other. */
const TOO_DEEP = 'Maximum call stack size exceeded';

function syntaxError(message = ''): string {
  if (message.includes(TOO_DEEP)) return 'This is nested too deeply.';
  if (message.includes('multiple documents'))
    return 'A plan is one document, and "---" begins another one: two documents are two plans.';
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** Absolute times begin so: a date, or a day with its month and year. plan.schema.json says the same. */
const ABSOLUTE =
  /^\s*(?:\d{4}-\d{2}-\d{2}|(?:[a-z]{3}\S*\s+)?(?:\d{1,2}\S*\s+[a-z]{3}\S*|[a-z]{3}\S*\s+\d{1,2}\S*)\s+\d{4}(?![\d:]))/i;

/** The zone in which a plan file's times are read. */
interface PlanZone {
  /** Milliseconds since the Unix epoch. */
  now: number;
  /** Its name. */
  zone: string;
  /** Whether the file names it. Else it is the person's: another machine would read another time. */
  isOfFile: boolean;
}

/**
 * A time of a plan file, in milliseconds: an absolute one in a zone that the file names, since a file that is applied twice
 * must mean the same.
 *
 * @param or what could stand in its place
 * @throws Failure `usage` for any other time, with what to write for it
 */
function readPlanTime(text: string, plan: PlanZone, reading: TimeReading, or = ''): number {
  const { now, zone } = plan;
  const read = (zoneAdvice?: string): number =>
    parseTime(
      text,
      { now, zone, advice: (typed) => adviceOnTime(typed, ['start:', 'end:']) },
      { ...reading, ...(zoneAdvice === undefined ? {} : { zoneAdvice }) },
    );
  if (ABSOLUTE.test(text)) return plan.isOfFile ? read() : read(toWrite(read(), plan));
  let why = `Write it as 2026-12-01T10:00:00Z${or}.`;
  try {
    why = toWrite(read(), plan);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  throw new Failure('usage', `${JSON.stringify(text)} is not an absolute time.`, { why });
}

/** What to write for an instant: the time in the file's zone, else with the offset of the person's, which is named. */
function toWrite(instant: number, { zone, isOfFile }: PlanZone): string {
  const clock = clockOf(zone);
  const local = formatInstant(clock.civil(instant)).replace(/(?::00)?\.\d+Z$/, '');
  if (isOfFile) return `Write ${local.replace('T', ' ')}.`;
  const offset = clock.offset(instant);
  const utc = zone === 'UTC' ? 'Z' : `${offset < 0 ? '-' : '+'}${timeText(Math.abs(offset))}`;
  return `Write ${local}${utc} (${zone}), or tz: ${zone} once at the head of the file.`;
}
