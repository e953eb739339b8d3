/** An instrument's name and help text, see {@link Family}, with the names of the labels that its values may have. */
interface Described<Name extends string> {
  name: string;
  help: string;
  labels?: readonly Name[];
}

/** Labels of one value, by their names. */
type LabelsOf<Name extends string> = Readonly<Partial<Record<Name, string>>>;

/** The values of one instrument, by their labels. */
class Series<Name extends string, Value> {
  readonly #values = new Map<string, { labels: Labels; value: Value }>();
  readonly #names: readonly Name[];
  readonly #initial: () => Value;

  /** @param names of the labels: the order in which an object has its labels makes no difference */
  constructor(names: readonly Name[], initial: () => Value) {
    this.#names = names;
    this.#initial = initial;
  }

  at(labels?: LabelsOf<Name>): { labels: Labels; value: Value } {
    const key = JSON.stringify(this.#names.map((name) => labels?.[name]));
    const found = this.#values.get(key) ?? { labels: { ...labels }, value: this.#initial() };
    this.#values.set(key, found);
    return found;
  }

  all(): { labels: Labels; value: Value }[] {
    return [...this.#values.values()];
  }
}

/** A number that only grows until the process ends. With the type `gauge` it also falls. */
export class Counter<Name extends string = never> {
  readonly #described: Pick<Family, 'name' | 'help' | 'type'>;
  readonly #series: Series<Name, number>;

  /** @param shown label sets that are shown as 0 before anything happened, so that a first rise is seen */
  constructor(
    { labels: names = [], type = 'counter', ...described }: Described<Name> & { type?: 'counter' | 'gauge' },
    shown: readonly LabelsOf<Name>[] = [],
  ) {
    this.#described = { ...described, type };
    this.#series = new Series(names, () => 0);
    for (const labels of shown) this.#series.at(labels);
  }

  add(labels?: LabelsOf<Name>, amount = 1): void {
    this.#series.at(labels).value += amount;
  }

  family(): Family {
    return { ...this.#described, samples: this.#series.all() };
  }
}

/** Counts values by size: for each bound, how many values were at most that large. */
export class Histogram<Name extends string = never> {
  readonly #described: Pick<Family, 'name' | 'help'>;
  readonly #bounds: readonly number[];
  readonly #series: Series<Name, { counts: number[]; sum: number }>;

  /**
   * @param bounds in rising order; values above the last one are counted too
   * @param shown as for {@link Counter}
   */
  constructor(
    { labels: names = [], ...described }: Described<Name>,
    bounds: readonly number[],
    shown: readonly LabelsOf<Name>[] = [],
  ) {
    this.#described = described;
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY];
    this.#series = new Series(names, () => ({ counts: this.#bounds.map(() => 0), sum: 0 }));
    for (const labels of shown) this.#series.at(labels);
  }

  observe(value: number, labels?: LabelsOf<Name>): void {
    const { value: spread } = this.#series.at(labels);
    const place = this.#bounds.findIndex((bound) => value <= bound);
    spread.counts[place] = (spread.counts[place] ?? 0) + 1;
    spread.sum += value;
  }

  family(): Family {
    const samples = this.#series.all().flatMap(({ labels, value: { counts, sum } }): Sample[] => {
      let total = 0;
      const buckets = this.#bounds.map((bound, place): Sample => {
        total += counts[place] ?? 0;
        return { suffix: '_bucket', labels: { ...labels, le: valueText(bound) }, value: total };
      });
      return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
    });
    return { ...this.#described, type: 'histogram', samples };
  }
}

/** The media type of {@link expositionText}. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Labels of a sample, by name. A value may be any text; a name is a word. */
export type Labels = Readonly<Record<string, string>>;

/** One line: the family's name with a suffix (`_bucket`, `_sum`, `_count`, or none), labels, and a value. */
interface Sample {
  suffix?: '_bucket' | '_sum' | '_count';
  labels: Labels;
  value: number;
}

/** One metric with its samples. Names are in base units: seconds, bytes. */
export interface Family {
  /** `[a-z_][a-z0-9_]*`; a counter's ends in `_total`. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** Its meaning, for people. */
  help: string;
  samples: readonly Sample[];
}

/**
 * Metrics in Prometheus' text format, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
 *
 * @example
 * // # HELP slices_conn_things_total Things.
 * // # TYPE slices_conn_things_total counter
 * // slices_conn_things_total{kind="a \"b\""} 3
 */
export function expositionText(families: readonly Family[]): string {
  return families
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(
        ({ suffix = '', labels, value }) => `${name}${suffix}${labelText(labels)} ${valueText(value)}\n`,
      );
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeHelp(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** A number as Go's ParseFloat reads it, as the format requires. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
