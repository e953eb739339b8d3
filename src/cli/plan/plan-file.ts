import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';
import type { AskedRoute } from '../../contract/asked-route.ts';
import { Failure } from '../../contract/failure.ts';
import { RESERVATION_NAME } from '../../contract/ids.ts';
import { isTimeZone } from '../../contract/instants.ts';
import type { ReservationRequest } from '../../contract/reservation-request.ts';
import { RESERVATION_TEXTS, type ReservationTexts } from '../../contract/reservation-texts.ts';
import { parseDuration } from '../../contract/typed-duration.ts';
import { hinted } from '../../session/choice.ts';
import { contradictionText } from '../../words/asked-route.ts';
import { later } from '../../words/typed-time.ts';
import type { TimeContext } from '../times.ts';
import { parseBandwidth, siteName } from '../values.ts';
import { type PlanZone, readPlanTime } from './plan-times.ts';

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

const TOP = ['version', 'experiment', 'tz', 'defaults', 'reservations', '$schema'];
/** The texts that are fields of a reservation. Its name is its key. */
export const PLAN_TEXTS = RESERVATION_TEXTS.filter((text) => text !== 'name');
const ROUTE_FIELDS = ['via', 'avoid', 'direct'] as const satisfies (keyof AskedRoute)[];
const FIELDS = ['sites', 'bandwidth', 'start', 'end', 'for', ...ROUTE_FIELDS, ...PLAN_TEXTS] as const;
type FieldName = (typeof FIELDS)[number];

/** A value of the file, and where it stands. Undefined: it is wrong, and its error is told already. */
interface Read<Value> {
  value: Value | undefined;
  node: Node;
}

/** The fields of a reservation, or of `defaults`. */
interface Fields {
  sites?: Read<readonly [string, string]>;
  bandwidth?: Read<number>;
  start?: Read<number | 'now'>;
  end?: Read<number>;
  for?: Read<number>;
  texts?: ReservationTexts;
  route?: AskedRoute;
}

/**
 * Reads a plan file: YAML 1.2 or JSON.
 *
 * @param name the file's name in errors, such as `demo.yaml`
 * @param times the current time; a time in the file has its own zone, or the file's `tz`
 * @param sites those that there are; without them their names are not looked up
 * @throws Failure `usage` that says of every error in which line and column it is
 */
export async function readPlan(
  bytes: Uint8Array,
  name: string,
  times: TimeContext,
  sites?: readonly string[],
): Promise<PlanContent> {
  if (bytes.length > MAX_SIZE) {
    const most = `A plan file has at most ${MAX_SIZE / 1024} KiB, and this one has ${Math.ceil(bytes.length / 1024)}.`;
    throw new Failure('usage', `${name} is too large.`, { why: most, fix: 'slices-conn plan --help' });
  }
  const file = new PlanFile(textOf(bytes, name), name, times, sites);
  const plan = await file.read();
  file.check();
  return plan;
}

function textOf(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure('usage', `${name} is not text in UTF-8.`, { fix: 'slices-conn plan --help' });
  }
}

/** Reads one file, and gathers all of its errors. */
class PlanFile {
  readonly #document: Document.Parsed | undefined;
  readonly #lines = new LineCounter();
  readonly #name: string;
  readonly #text: string;
  readonly #sites: readonly string[] | undefined;
  readonly #now: number;
  /** The zone of the file's times, once it has named one. */
  #zone: PlanZone;
  /** The node of each alias: a name may be given to several nodes, and means the one before the alias. */
  readonly #targets = new Map<Alias, Node>();
  readonly #errors: { offset: number; text: string }[] = [];

  constructor(text: string, name: string, times: TimeContext, sites: readonly string[] | undefined) {
    this.#name = name;
    this.#text = text;
    this.#sites = sites;
    this.#now = times.now;
    this.#zone = { ...times, isOfFile: false };
    try {
      this.#document = parseDocument(text, {
        version: '1.2',
        lineCounter: this.#lines,
        prettyErrors: false,
        // Told here, each with its own line.
        uniqueKeys: false,
        logLevel: 'error',
      });
      const named = new Map<string, Node>();
      visit(this.#document, (_key, node) => {
        const target = isAlias(node) ? named.get(node.source) : undefined;
        if (isAlias(node) && target) this.#targets.set(node, target);
        else if (isNode(node) && !isAlias(node) && node.anchor !== undefined) named.set(node.anchor, node);
      });
      const found = [...this.#document.errors, ...this.#document.warnings];
      const deep = found.find(({ message }) => message.includes(TOO_DEEP));
      // A second error of a parser at one place follows from the first.
      const told = Map.groupBy(deep ? [deep] : found, ({ pos }) => pos[0]);
      for (const [offset, [error]] of told) this.#errors.push({ offset, text: syntaxError(error?.message) });
    } catch {
      this.#errors.push({ offset: 0, text: syntaxError(TOO_DEEP) });
    }
  }

  /** Throws where there were errors. @throws Failure `usage` */
  check(): void {
    // YAML takes a comment of JavaScript for text, and what is said then is hard to understand.
    const comment = this.#errors.length > 0 ? COMMENT.exec(this.#text) : null;
    if (comment) {
      const text = 'JSON has no comments: leave them out, or write the plan as YAML.';
      this.#errors.splice(0, Infinity, { offset: comment[0].length, text });
    }
    const told = this.#errors
      .toSorted((one, other) => one.offset - other.offset)
      .map(({ offset, text }) => `${this.#placeOf(offset)}: ${text}`);
    const [first, ...others] = told;
    if (first === undefined) return;
    if (others.length === 0) throw new Failure('usage', first, { fix: 'slices-conn plan --help' });
    const more = told.length - MOST_TOLD;
    throw new Failure('usage', `${this.#name} has ${told.length} errors.`, {
      lines: [...told.slice(0, MOST_TOLD), ...(more > 0 ? [`and ${more} more`] : [])],
      fix: 'slices-conn plan --help',
    });
  }

  /** The plan; to be used only after {@link check}. */
  async read(): Promise<PlanContent> {
    const nothing: PlanContent = { experiment: undefined, reservations: [] };
    if (this.#errors.length > 0) return nothing;
    const top = this.#resolved(this.#document?.contents ?? undefined);
    if (!isMap(top)) {
      this.#wrong(top, 'A plan file begins with "version: 1", and has reservations by their names.');
      return nothing;
    }
    const members = this.#members(top, TOP, 'a plan file');
    this.#version(members.get('version')?.value, top);
    const experiment = members.get('experiment');
    await this.#readZone(members.get('tz')?.value);
    const wanted = await this.#reservations(members, top);
    return {
      experiment: experiment && (await this.#guarded(experiment.value, (text) => text)),
      reservations: wanted,
    };
  }

  /** Reads `tz`, the zone of the file's times. The machine's would move links where another machine applies the file. */
  async #readZone(node: Node | undefined): Promise<void> {
    if (!node) return;
    // A zone that is wrong is told once, and not of each time.
    this.#zone = { ...this.#zone, isOfFile: true };
    await this.#guarded(node, (zone) => {
      if (!isTimeZone(zone)) {
        const why = 'Write it as Europe/Brussels, UTC or +01:00.';
        throw new Failure('usage', `${JSON.stringify(zone)} is not a time zone.`, { why });
      }
      this.#zone = { now: this.#now, zone, isOfFile: true };
    });
  }

  #version(node: Node | undefined, top: Node): void {
    const found = node && this.#resolved(node);
    const value = isScalar(found) ? found.value : undefined;
    if (!node) this.#wrong(top, '"version: 1" is missing.');
    else if (value !== 1)
      this.#wrong(node, 'This program reads plan files of version 1: write "version: 1".');
  }

  async #reservations(members: ReadonlyMap<string, Member>, top: Node): Promise<WantedReservation[]> {
    const given = members.get('defaults');
    const defaults = (given && (await this.#fields(given.value, 'defaults'))) ?? {};
    const member = members.get('reservations');
    if (!member) {
      this.#wrong(top, 'reservations are missing: names, each with sites, bandwidth, start, and end or for.');
      return [];
    }
    const map = this.#resolved(member.value);
    if (!isMap(map)) {
      this.#wrong(member.value, 'reservations must be names, each with what it wants; {} for none.');
      return [];
    }
    const wanted: WantedReservation[] = [];
    for (const [name, { key, value }] of this.#members(map)) {
      if (!RESERVATION_NAME.test(name)) {
        const rule = 'Names have 1 to 64 characters of a to z, 0 to 9 and -, and begin with a letter.';
        this.#wrong(key, `${JSON.stringify(name)} is not a name of a reservation. ${rule}`);
      }
      const own = await this.#fields(value, 'a reservation', defaults);
      const one = own && (await this.#wanted(name, key, own, defaults));
      if (one) wanted.push(one);
    }
    return wanted;
  }

  /** Reads the fields of a reservation, or of the defaults; undefined where the node has no keys. @param defaults apply too */
  async #fields(node: Node, what: string, defaults: Fields = {}): Promise<Fields | undefined> {
    const map = this.#resolved(node);
    if (!isMap(map)) {
      this.#wrong(node, `Here belong the keys of ${what}: ${FIELDS.join(', ')}.`);
      return undefined;
    }
    const members = this.#members(map, FIELDS, what);
    const fields: Fields = {};
    const field = async (
      name: FieldName,
      read: (text: string) => number | 'now',
    ): Promise<Fields | undefined> => {
      const found = members.get(name)?.value;
      return found && { [name]: { node: found, value: await this.#guarded(found, read) } };
    };
    const sites = members.get('sites')?.value;
    Object.assign(
      fields,
      sites && { sites: { node: sites, value: await this.#ends(sites) } },
      await field('bandwidth', parseBandwidth),
      await field('start', (text) =>
        /^\s*now\s*$/i.test(text) ? 'now' : readPlanTime(text, this.#zone, {}, ', or now'),
      ),
      await field('for', parseDuration),
    );
    const start = (fields.start ?? defaults.start)?.value;
    const after = typeof start === 'number' ? Math.max(start, this.#now) : this.#now;
    Object.assign(
      fields,
      await field('end', (text) => readPlanTime(text, this.#zone, { after, isEnd: true })),
    );
    const texts: ReservationTexts = {};
    for (const text of PLAN_TEXTS) {
      const found = members.get(text)?.value;
      if (found) texts[text] = await this.#guarded(found, (typed) => typed);
    }
    fields.texts = texts;
    fields.route = await this.#route(members);
    if (fields.end && fields.for) this.#wrong(fields.for.node, "end and for can't be given together.");
    return fields;
  }

  /** One reservation with its defaults; undefined where something is wrong. */
  async #wanted(
    name: string,
    key: Node,
    own: Fields,
    defaults: Fields,
  ): Promise<WantedReservation | undefined> {
    // An own end or duration replaces either of the defaults.
    const { end: _end, for: _for, ...rest } = defaults;
    const {
      sites,
      bandwidth,
      start,
      end,
      for: lasting,
    } = own.end || own.for ? { ...rest, ...own } : { ...defaults, ...own };
    const missing = [
      ...(sites ? [] : ['sites']),
      ...(bandwidth ? [] : ['bandwidth']),
      ...(start ? [] : ['start']),
      ...(end || lasting ? [] : ['end or for']),
    ];
    if (missing.length > 0) this.#wrong(key, `${name} has no ${missing.join(', and no ')}.`);
    if (start?.value === 'now' && end) {
      const how = 'write "for: 2h" in place of the end';
      this.#wrong(
        own.end?.node ?? own.start?.node ?? key,
        `${name} starts now, and needs a duration: ${how}.`,
      );
      return undefined;
    }
    const from = start?.value === 'now' ? this.#now : start?.value;
    const length = lasting?.value;
    if (!sites?.value || bandwidth?.value === undefined || start?.value === undefined || from === undefined) {
      return undefined;
    }
    const until =
      lasting && length !== undefined
        ? await this.#guarded(lasting.node, () => later(from, length))
        : end?.value;
    if (until === undefined) return undefined;
    if (until <= from) {
      this.#wrong(own.end?.node ?? own.start?.node ?? key, `${name} would end before it starts.`);
      return undefined;
    }
    const [site1, site2] = sites.value;
    const route = { ...defaults.route, ...own.route };
    const contradiction = contradictionText({ site1, site2, ...route });
    if (contradiction !== undefined) {
      this.#wrong(key, contradiction);
      return undefined;
    }
    return {
      ...{ ...defaults.texts, ...own.texts, ...route, name, site1, site2, bandwidth: bandwidth.value },
      ...{ start: start.value, end: until, length: until - from },
      place: this.#placeOf(offsetOf(sites.node)),
    };
  }

  /** Reads what is asked of the route. Members that are not given are left out, so that those of the defaults stay. */
  async #route(members: ReadonlyMap<string, Member>): Promise<AskedRoute> {
    const route: AskedRoute = {};
    for (const field of ['via', 'avoid'] as const) {
      const list = this.#resolved(members.get(field)?.value);
      if (!list) continue;
      const sites: string[] = [];
      for (const node of isSeq<Node>(list) ? list.items : [list]) {
        const site = await this.#site(node);
        if (site !== undefined) sites.push(site);
      }
      route[field] = sites;
    }
    const direct = members.get('direct')?.value;
    if (direct) route.direct = await this.#guarded(direct, isTrue);
    return route;
  }

  async #ends(node: Node): Promise<readonly [string, string] | undefined> {
    const list = this.#resolved(node);
    const [one, other, more] = isSeq<Node>(list) ? list.items : [];
    if (!one || !other || more) {
      this.#wrong(node, 'sites must be the two ends of a link, such as [be-gent1, pl-poznan1].');
      return undefined;
    }
    const [site1, site2] = [await this.#site(one), await this.#site(other)];
    if (site1 === undefined || site2 === undefined) return undefined;
    if (site1 !== site2) return [site1, site2];
    this.#wrong(other, `A link has two different ends, and both are ${site1}.`);
    return undefined;
  }

  #site(node: Node): Promise<string | undefined> {
    return this.#guarded(node, (text) => {
      const name = siteName(text);
      const known = this.#sites ?? [name];
      if (known.includes(name)) return name;
      throw new Failure('usage', hinted(`There is no site ${name}.`, name, known));
    });
  }

  /** A value of the text of a node; undefined where it is wrong. */
  async #guarded<Value>(
    node: Node,
    read: (text: string) => Value | Promise<Value>,
  ): Promise<Value | undefined> {
    const text = textIn(this.#resolved(node));
    try {
      if (text !== undefined) return await read(text);
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
   * @param known all keys that there are; without it any is taken
   */
  #members(map: YAMLMap, known?: readonly string[], what = 'it'): Map<string, Member> {
    const members = new Map<string, Member>();
    for (const { key, value } of map.items) {
      const keyNode = key as Node;
      const name = textIn(this.#resolved(keyNode));
      if (name === undefined) {
        const resolved = this.#resolved(keyNode);
        const isNull = isScalar(resolved) && resolved.value === null;
        const { source = '' } = isNull ? resolved : {};
        this.#wrong(
          keyNode,
          isNull
            ? `The key ${source} is nothing in YAML: write "${source}" in quotes.`
            : 'A key must be one word.',
        );
        continue;
      }
      const before = members.get(name);
      if (before) {
        const { line } = this.#lines.linePos(offsetOf(before.key));
        this.#wrong(keyNode, `${JSON.stringify(name)} is given twice; the first is in line ${line}.`);
      } else if (known && !known.includes(name)) {
        const keys = known.filter((each) => !each.startsWith('$')).join(', ');
        const found = `${JSON.stringify(name)} is not a key of ${what}.`;
        const said = hinted(found, name, known);
        this.#wrong(keyNode, said === found ? `${found} Its keys are ${keys}.` : said);
      } else members.set(name, { key: keyNode, value: (value as Node | null) ?? keyNode });
    }
    return members;
  }

  /** The node of an alias; any other node as it is. */
  #resolved(node: Node | undefined): Node | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  #wrong(node: Node | undefined, text: string): void {
    this.#errors.push({ offset: node ? offsetOf(node) : 0, text });
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

/** A key of a mapping, and its value. */
interface Member {
  key: Node;
  value: Node;
}

function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

/** The text of a scalar: a number as it is written, so that it is read as the command line reads it. */
function textIn(node: Node | undefined): string | undefined {
  if (!isScalar(node)) return undefined;
  const { value, source } = node;
  if (typeof value === 'string') return value;
  return value === null ? undefined : (source ?? String(value));
}

/** A text that begins as JSON, or with a comment of JavaScript, up to its first such comment. */
const COMMENT = /^(?=\s*(?:[{[]|\/[/*]))(?:[^"/]|"(?:[^"\\]|\\.)*"|\/(?![/*]))*(?<=^|[\s,{}[\]])(?=\/[/*])/;

/** The engine's message for thousands of lists in each other. */
const TOO_DEEP = 'Maximum call stack size exceeded';

function syntaxError(message = ''): string {
  if (message.includes(TOO_DEEP)) return 'This is nested too deeply.';
  if (message.includes('multiple documents'))
    return 'A plan is one document, and "---" begins another one: two documents are two plans.';
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
