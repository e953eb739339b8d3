/** An instrument's name and help text. */
export interface InstrumentOptions {
  /** See {@link Family}. */
  name: string;
  help: string;
}

/** The values of one instrument, by their labels. */
class Series<Value> {
  readonly #values = new Map<string, { labels: Labels; value: Value }>();
  readonly #initial: () => Value;

  constructor(initial: () => Value) {
    this.#initial = initial;
  }

  at(labels: Labels): { labels: Labels; value: Value } {
    const key = JSON.stringify(Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1)));
    const found = this.#values.get(key) ?? { labels, value: this.#initial() };
    this.#values.set(key, found);
    return found;
  }

  all(): { labels: Labels; value: Value }[] {
    return [...this.#values.values()];
  }
}

/** A number that only grows, until the process ends. */
export class Counter {
  readonly #options: InstrumentOptions;
  readonly #series = new Series(() => 0);

  /** @param shown label sets that are shown as 0 before anything happened, so that a first rise is seen */
  constructor(options: InstrumentOptions, shown: readonly Labels[] = []) {
    this.#options = options;
    for (const labels of shown) this.#series.at(labels);
  }

  add(labels: Labels = {}, amount = 1): void {
    this.#series.at(labels).value += amount;
  }

  family(): Family {
    return { ...this.#options, type: 'counter', samples: this.#series.all() };
  }
}

/** A number that rises and falls; it has no labels. */
export class Gauge {
  readonly #options: InstrumentOptions;
  #value = 0;

  constructor(options: InstrumentOptions) {
    this.#options = options;
  }

  add(amount: number): void {
    this.#value += amount;
  }

  set(value: number): void {
    this.#value = value;
  }

  family(): Family {
    return { ...this.#options, type: 'gauge', samples: [{ labels: {}, value: this.#value }] };
  }
}

/** Counts values by size: for each bound, how many values were at most that large. */
export class Histogram {
  readonly #options: InstrumentOptions;
  readonly #bounds: readonly number[];
  readonly #series: Series<{ counts: number[]; sum: number }>;

  /**
   * @param bounds in rising order; values above the last one are counted too
   * @param shown as for {@link Counter}
   */
  constructor(options: InstrumentOptions, bounds: readonly number[], shown: readonly Labels[] = []) {
    this.#options = options;
    this.#bounds = bounds;
    this.#series = new Series(() => ({ counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }));
    for (const labels of shown) this.#series.at(labels);
  }

  observe(value: number, labels: Labels = {}): void {
    const { value: spread } = this.#series.at(labels);
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const place = found === -1 ? this.#bounds.length : found;
    spread.counts[place] = (spread.counts[place] ?? 0) + 1;
    spread.sum += value;
  }

  family(): Family {
    const samples = this.#series.all().flatMap(({ labels, value: { counts, sum } }): Sample[] => {
      let total = 0;
      const buckets = counts.map((count, place): Sample => {
        total += count;
        const le = valueText(this.#bounds[place] ?? Number.POSITIVE_INFINITY);
        return { suffix: '_bucket', labels: { ...labels, le }, value: total };
      });
      return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
    });
    return { ...this.#options, type: 'histogram', samples };
  }
}

/** The media type of {@link expositionText}. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Labels of a sample, by name. A value may be any text; a name is a word. */
export type Labels = Readonly<Record<string, string>>;

/** One line: the family's name with a suffix (`_bucket`, `_sum`, `_count`, or none), labels, and a value. */
export interface Sample {
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
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

/** A number as Go's ParseFloat reads it, as the format requires. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
